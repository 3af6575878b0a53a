/** LDS: all listeners of a proxy, in the order of spec/discovery.md §8.4. */
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import { namedResource, type Resource } from '../resource.ts';
import { gatewayListeners } from './gateway.ts';
import { inboundListeners } from './inbound.ts';
import { outboundListeners } from './outbound.ts';
import { virtualOutbound } from './virtual.ts';

/** Names are unique: of two listeners of one place the first stays. */
export function buildListeners(view: ProxyView, push: PushContext): Resource[] {
  const all = view.type === 'router' ? gatewayListeners(view, push) : sidecarListeners(view, push);
  const byName = new Map<string, Resource>();
  for (const resource of all) if (!byName.has(resource.name)) byName.set(resource.name, resource);
  return [...byName.values()];
}

function sidecarListeners(view: ProxyView, push: PushContext): Resource[] {
  const redirected = view.interceptionMode !== 'NONE';
  return [
    ...outboundListeners(view, push),
    ...(redirected ? [namedResource(ListenerSchema, virtualOutbound(view, push))] : []),
    ...inboundListeners(view, push),
  ];
}
