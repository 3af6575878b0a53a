/** The inbound listeners of a sidecar: the virtual one, and those of ports that it must bind itself (§8.4). */
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ConfigKey } from '../../model/config.ts';
import { isHttp } from '../../model/protocol.ts';
import { serviceKey } from '../../model/service.ts';
import { isWildcardAddress, wildcardAddress } from '../address.ts';
import type { ProxyContext } from '../connection-context.ts';
import { type InboundTarget, inboundTargets } from '../inbound-target.ts';
import { listenerName } from '../names.ts';
import { policyKeys } from '../policies.ts';
import { isPrivilegedPort, isReservedPort } from '../reserved-ports.ts';
import { namedResource, type Resource } from '../resource.ts';
import { inboundChains } from './inbound-chains.ts';
import { httpInspector } from './inspection.ts';
import { makeListener } from './listener.ts';
import { type InboundPort, virtualInbound } from './virtual.ts';

/** The virtual listener, unless nothing is redirected, and the listeners that bind their own port. */
export function inboundListeners(proxy: ProxyContext): Resource[] {
  const { shape, push, policies } = proxy;
  const targets = inboundTargets(shape, push);
  const redirected = targets.filter((target) => target.ownListener === undefined);
  const own = targets.filter((target) => target.ownListener !== undefined);
  const resources = own.flatMap((target) => ownListener(target, proxy));
  if (shape.interceptionMode === 'NONE') return resources;
  const ports = redirected.map((target) => inboundPort(target, proxy));
  const dependsOn = [...redirected.flatMap((target) => keysOf(target)), ...policyKeys(policies)];
  return [namedResource(ListenerSchema, virtualInbound(proxy, ports), dependsOn), ...resources];
}

function inboundPort(target: InboundTarget, proxy: ProxyContext): InboundPort {
  const sniffed = target.protocol === 'unsupported';
  return {
    port: target.port,
    chains: inboundChains(target, proxy, { redirected: true }),
    sniffed,
    silent: !sniffed && !isHttp(target.protocol) && target.tls === undefined,
  };
}

function ownListener(target: InboundTarget, proxy: ProxyContext): Resource[] {
  const { shape, push, policies } = proxy;
  const bind = target.ownListener?.bind ?? wildcardAddress(shape.ipFamily);
  if (isPrivilegedPort(target.port, shape)) return [];
  if (isWildcardAddress(bind) && isReservedPort(target.port, push.mesh)) return [];
  const listener = makeListener({
    name: listenerName(bind, target.port),
    direction: 'inbound',
    bind,
    port: target.port,
    bindToPort: true,
    filterChains: inboundChains(target, proxy, { redirected: false }),
    listenerFilters: target.protocol === 'unsupported' ? [httpInspector()] : [],
    mesh: push.mesh,
  });
  return [namedResource(ListenerSchema, listener, [...keysOf(target), ...policyKeys(policies)])];
}

function keysOf(target: InboundTarget): ConfigKey[] {
  return target.services.map((service) => serviceKey(service));
}
