import { ListenerSchema } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import { serviceKey } from '../../../model/services/service.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import type { ProxyContext } from '../../inputs/connection-context.ts';
import { policyKeys } from '../../inputs/policies.ts';
import { wildcardAddress } from '../../messages/address.ts';
import { type EnvoyResource, namedResource } from '../../messages/resource.ts';
import { type InboundTarget, inboundTargets } from '../../traffic/inbound-target.ts';
import { isPrivilegedPort, isReservedPort } from '../../traffic/reserved-ports.ts';
import { listenerName } from '../../traffic/resource-names.ts';
import { httpInspector, tlsInspector } from '../inspection.ts';
import { buildListener, dualStackAddresses } from '../listener.ts';
import { listenerAccessLogs } from '../observability/access-log.ts';
import { virtualInbound } from '../virtual.ts';
import { inboundPort } from './inbound-chains.ts';

/** Returns no virtual listener if traffic is not redirected. */
export function inboundListeners(proxy: ProxyContext): EnvoyResource[] {
  const { shape, push, policies } = proxy;
  const targets = inboundTargets(shape, push);
  const redirectedTargets = targets.filter((target) => !target.hasOwnListener);
  const dedicatedTargets = targets.filter((target) => target.hasOwnListener);
  const resources = dedicatedTargets.flatMap((target) => dedicatedListener(target, proxy));
  if (shape.interceptionMode === 'NONE') return resources;
  const ports = redirectedTargets.map((target) => inboundPort(target, proxy, { redirected: true }));
  const dependsOn = [...redirectedTargets.flatMap((target) => keysOf(target)), ...policyKeys(policies)];
  return [namedResource(ListenerSchema, virtualInbound(proxy, ports), dependsOn), ...resources];
}

function dedicatedListener(target: InboundTarget, proxy: ProxyContext): EnvoyResource[] {
  const { shape, push, policies } = proxy;
  const { bind } = target;
  if (isPrivilegedPort(target.port, shape)) return [];
  if (isUnspecified(bind) && isReservedPort(target.port, push.mesh)) return [];
  const { chains, detectsTls, detectsHttp } = inboundPort(target, proxy, { redirected: false });
  const listener = buildListener({
    name: listenerName(bind, target.port),
    direction: 'inbound',
    bind,
    port: target.port,
    bindToPort: true,
    filterChains: [...chains],
    listenerFilters: [...(detectsTls ? [tlsInspector()] : []), ...(detectsHttp ? [httpInspector()] : [])],
    mesh: push.mesh,
    accessLog: listenerAccessLogs({
      ...proxy,
      direction: 'inbound',
      listener: listenerName(bind, target.port),
      port: target.port,
    }),
    ...(bind === wildcardAddress('dual') && { more: dualStackAddresses(shape, target.port) }),
  });
  return [namedResource(ListenerSchema, listener, [...keysOf(target), ...policyKeys(policies)])];
}

function keysOf(target: InboundTarget): ConfigKey[] {
  return target.services.map((service) => serviceKey(service));
}
