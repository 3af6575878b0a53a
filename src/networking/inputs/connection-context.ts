/** Inputs of a connection's filters and access logs. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import { policiesOutbound } from './policies.ts';

/** A proxy and the policies of its workload. */
export interface ProxyContext {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly policies: WorkloadPolicies;
}

/** Filters and access logs must not depend on anything else. */
export interface ConnectionContext extends ProxyContext {
  /** Location of the client: the own workload, the mesh, or outside the mesh. */
  readonly direction: 'outbound' | 'inbound' | 'gateway';
  /** Name of the listener, or of the inbound filter chain. It distinguishes statistics. */
  readonly listener: string;
  /** The port that clients connect to, inbound that of the workload. 0 for a chain that serves any port. */
  readonly port: number;
}

export function proxyContext(shape: ProxyShape, push: PushContext): ProxyContext {
  return { shape, push, policies: push.policiesFor(shape) };
}

/** A proxy as a client, without policies that only apply to inbound traffic. */
export function clientContext(proxy: ProxyContext): ProxyContext {
  return { ...proxy, policies: policiesOutbound(proxy.policies) };
}
