/** What the filters and logs of a connection are made for, whatever listener the connection came to. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import { policiesOutbound } from './policies.ts';

/** A proxy, and what holds for its workload. */
export interface ProxyContext {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly policies: WorkloadPolicies;
}

/** All that a filter or a log may read. */
export interface ConnectionContext extends ProxyContext {
  /** Which side of the proxy the client is on: its own workload, the mesh, or the world outside. */
  readonly direction: 'outbound' | 'inbound' | 'gateway';
  /** Name of the listener, inbound of the filter chain: statistics are told apart by it. */
  readonly listener: string;
  /** The port that clients connect to: for inbound that of the workload. 0 for a chain that serves whatever port. */
  readonly port: number;
}

export function proxyContext(shape: ProxyShape, push: PushContext): ProxyContext {
  return { shape, push, policies: push.policiesFor(shape) };
}

/** A proxy as a client. Policies on requests to its workload count for nothing then, and are left out. */
export function clientContext(proxy: ProxyContext): ProxyContext {
  return { ...proxy, policies: policiesOutbound(proxy.policies) };
}
