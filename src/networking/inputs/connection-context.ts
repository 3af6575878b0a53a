import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import { policiesOutbound } from './policies.ts';

export interface ProxyContext {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly policies: WorkloadPolicies;
}

export interface ConnectionContext extends ProxyContext {
  /** Whether the client is the workload itself, another workload of the mesh, or outside the mesh. */
  readonly direction: 'outbound' | 'inbound' | 'gateway';
  /** Name of the listener or the inbound filter chain, used in statistics. */
  readonly listener: string;
  /** The port that clients connect to; for inbound traffic, the workload's port. 0 for a chain of all ports. */
  readonly port: number;
}

export function proxyContext(shape: ProxyShape, push: PushContext): ProxyContext {
  return { shape, push, policies: push.policiesFor(shape) };
}

export function clientContext(proxy: ProxyContext): ProxyContext {
  return { ...proxy, policies: policiesOutbound(proxy.policies) };
}
