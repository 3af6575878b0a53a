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
import { buildOutboundListenersInSteps } from './outbound/outbound.ts';
import { virtualOutbound } from './virtual.ts';

/** Names are unique. For several listeners with one address and port, keeps the first. */
export function buildListeners(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  return runToEnd(buildListenersInSteps(shape, push, cache));
}

export function* buildListenersInSteps(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  const proxy = proxyContext(shape, push);
  const builtListeners = yield* shape.type === 'router' ? gatewayListeners(proxy) : sidecarListeners(proxy, cache);
  const listenerByName = new Map<string, EnvoyResource>();
  for (const resource of builtListeners)
    if (!listenerByName.has(resource.name)) listenerByName.set(resource.name, resource);
  return [...listenerByName.values()];
}

function* sidecarListeners(proxy: ProxyContext, cache: Memory): Generator<undefined, EnvoyResource[]> {
  const isRedirected = proxy.shape.interceptionMode !== 'NONE';
  const inbound = inboundListeners(proxy);
  yield undefined;
  const outbound = yield* buildOutboundListenersInSteps(proxy, cache);
  return [
    ...withoutSameAddress(inbound, outbound),
    ...(isRedirected ? [namedResource(ListenerSchema, virtualOutbound(proxy), policyKeys(proxy.policies))] : []),
    ...inbound,
  ];
}

/** Removes listeners with the address and port of an inbound listener, because Envoy accepts only one. */
function withoutSameAddress(
  inbound: readonly EnvoyResource[],
  outbound: readonly EnvoyResource[],
): readonly EnvoyResource[] {
  const inboundPlaces = new Set(
    inbound.filter(({ name }) => name !== virtualInboundListener).map(({ name }) => normalizedListenerName(name)),
  );
  return inboundPlaces.size === 0
    ? outbound
    : outbound.filter(({ name }) => !inboundPlaces.has(normalizedListenerName(name)));
}

/** Normalizes address and port in a listener name, because IPv6 addresses have several spellings. */
function normalizedListenerName(name: string): string {
  const end = name.lastIndexOf('_');
  const bind = name.slice(0, end);
  if (!isIPv6(bind)) return name;
  return `${new SocketAddress({ address: bind, family: 'ipv6' }).address}${name.slice(end)}`;
}
