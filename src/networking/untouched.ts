/**
 * Changes that the tables of spec/discovery.md §6.5 let through although they leave a type as it is: most virtual
 * services route requests and nothing else, so they change no cluster and no listener.
 */

import { sameItems } from '../model/collections/same-items.ts';
import type { ConfigKey } from '../model/config/config.ts';
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../model/push-context/sidecar-scope.ts';
import { gatewayName } from './gateway/placed-server.ts';
import { connectionServices, mayRuleConnections } from './listeners/ruled-connections.ts';

/** Whether everything of a type is for a shape what it was before the changes; false when that is not sure. */
export type IsUntouched = (
  changes: readonly ConfigKey[],
  shape: ProxyShape,
  now: PushContext,
  before: PushContext,
) => boolean;

/** Virtual services give a sidecar clusters of services that it would not see otherwise, and else no cluster. */
export const untouchedClusters: IsUntouched = (changes, shape, now, before) => {
  if (!onlyVirtualServices(changes)) return false;
  if (shape.type === 'router') return !now.features.onlyReferencedClusters;
  return sameServices(now.sidecarScopeFor(shape), before.sidecarScopeFor(shape));
};

/** What is in reach decides what a name means; virtual services and Sidecar objects have a say in nothing else. */
export const untouchedEndpoints: IsUntouched = (changes, shape, now, before) => {
  if (!changes.every(({ kind }) => kind === 'VirtualService' || kind === 'Sidecar')) return false;
  return sameItems(now.sidecarScopeFor(shape).services, before.sidecarScopeFor(shape).services);
};

/** Virtual services and destination rules of requests are in no listener; those of connections are. */
export const untouchedListeners: IsUntouched = (changes, shape, now, before) => {
  const rules = changes.filter(({ kind }) => kind === 'DestinationRule');
  if (!onlyVirtualServices(changes.filter((key) => !rules.includes(key)))) return false;
  if (shape.type === 'router' && rules.length > 0) return false;
  if (rules.some((key) => [now, before].some((push) => mayRuleConnections(key, shape, push)))) return false;
  if (shape.type === 'router') return sameGatewayConnections(shape, now, before);
  const [here, there] = [now.sidecarScopeFor(shape), before.sidecarScopeFor(shape)];
  if (here === there) return true;
  return (
    sameServices(here, there) &&
    here.outboundTrafficPolicy === there.outboundTrafficPolicy &&
    here.egressListeners.every((listener, index) => {
      const other = there.egressListeners[index]!;
      return (
        listener.services === other.services &&
        sameItems(connectionServices(listener.virtualServices), connectionServices(other.virtualServices))
      );
    })
  );
};

/** A gateway's listener has thousands of hosts, and their requests are routed elsewhere. */
function sameGatewayConnections(shape: ProxyShape, now: PushContext, before: PushContext): boolean {
  const gateways = now.gatewaysFor(shape);
  if (gateways !== before.gatewaysFor(shape)) return false;
  return gateways.every((gateway) => {
    const [here, there] = [now, before].map((push) =>
      push.virtualServicesFor(gatewayName(gateway), shape.configNamespace),
    ) as [readonly ResolvedVirtualService[], readonly ResolvedVirtualService[]];
    return here === there || sameItems(connectionServices(here), connectionServices(there));
  });
}

function onlyVirtualServices(changes: readonly ConfigKey[]): boolean {
  return changes.every(({ kind }) => kind === 'VirtualService');
}

function sameServices(a: SidecarScope, b: SidecarScope): boolean {
  return a.sidecar === b.sidecar && sameItems(a.services, b.services);
}
