/** LDS: all listeners of a proxy, in the order of spec/discovery.md §8.4. */
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type ProxyContext, proxyContext } from '../inputs/connection-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { policyKeys } from '../inputs/policies.ts';
import { namedResource, type Resource } from '../messages/resource.ts';
import { gatewayListeners } from './gateway.ts';
import { inboundListeners } from './inbound.ts';
import { outboundListeners } from './outbound.ts';
import { virtualOutbound } from './virtual.ts';

/** Names are unique: of two listeners of one place the first stays. */
export function buildListeners(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  const proxy = proxyContext(shape, push);
  const all = shape.type === 'router' ? gatewayListeners(proxy) : sidecarListeners(proxy, memory);
  const byName = new Map<string, Resource>();
  for (const resource of all) if (!byName.has(resource.name)) byName.set(resource.name, resource);
  return [...byName.values()];
}

function sidecarListeners(proxy: ProxyContext, memory: Memory): Resource[] {
  const redirected = proxy.shape.interceptionMode !== 'NONE';
  return [
    ...outboundListeners(proxy, memory),
    ...(redirected ? [namedResource(ListenerSchema, virtualOutbound(proxy), policyKeys(proxy.policies))] : []),
    ...inboundListeners(proxy),
  ];
}
