/** Builds all listeners of a proxy for LDS, in Istio's order. */
import { isIPv6, SocketAddress } from 'node:net';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { type ProxyContext, proxyContext } from '../inputs/connection-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { policyKeys } from '../inputs/policies.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import { virtualInboundListener } from '../traffic/resource-names.ts';
import { gatewayListeners } from './gateway/gateway.ts';
import { inboundListeners } from './inbound/inbound.ts';
import { buildingOutboundListeners } from './outbound/outbound.ts';
import { virtualOutbound } from './virtual.ts';

/** Names are unique. For several listeners with one address and port, keeps the first. */
export function buildListeners(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  return runToEnd(buildingListeners(shape, push, cache));
}

export function* buildingListeners(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  const proxy = proxyContext(shape, push);
  const all = yield* shape.type === 'router' ? gatewayListeners(proxy) : sidecarListeners(proxy, cache);
  const listenerByName = new Map<string, EnvoyResource>();
  for (const resource of all) if (!listenerByName.has(resource.name)) listenerByName.set(resource.name, resource);
  return [...listenerByName.values()];
}

function* sidecarListeners(proxy: ProxyContext, cache: Memory): Generator<undefined, EnvoyResource[]> {
  const redirected = proxy.shape.interceptionMode !== 'NONE';
  const inbound = inboundListeners(proxy);
  yield undefined;
  const outbound = yield* buildingOutboundListeners(proxy, cache);
  return [
    ...withoutPlacesOf(inbound, outbound),
    ...(redirected ? [namedResource(ListenerSchema, virtualOutbound(proxy), policyKeys(proxy.policies))] : []),
    ...inbound,
  ];
}

/** Removes listeners with the address and port of an inbound listener, because Envoy accepts only one. */
function withoutPlacesOf(
  inbound: readonly EnvoyResource[],
  outbound: readonly EnvoyResource[],
): readonly EnvoyResource[] {
  const dedicated = new Set(
    inbound.filter(({ name }) => name !== virtualInboundListener).map(({ name }) => placeOf(name)),
  );
  return dedicated.size === 0 ? outbound : outbound.filter(({ name }) => !dedicated.has(placeOf(name)));
}

/** Normalizes address and port in a listener name, because IPv6 addresses have several spellings. */
function placeOf(name: string): string {
  const end = name.lastIndexOf('_');
  const bind = name.slice(0, end);
  if (!isIPv6(bind)) return name;
  return `${new SocketAddress({ address: bind, family: 'ipv6' }).address}${name.slice(end)}`;
}
