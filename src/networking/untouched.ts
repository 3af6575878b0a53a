/** Excludes changes that do not affect a type although Istio's tables of kinds and types list them. */

import { sameItems } from '../model/collections/same-items.ts';
import type { ConfigKey } from '../model/config/config.ts';
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../model/push-context/sidecar-scope.ts';
import { gatewayName } from './gateway/placed-server.ts';
import { mayAffectConnections, virtualServicesOfConnections } from './listeners/ruled-connections.ts';

export type IsUntouched = (
  changes: readonly ConfigKey[],
  shape: ProxyShape,
  currentPush: PushContext,
  previous: PushContext,
) => boolean;

/** A VirtualService adds clusters to a sidecar only if it extends the sidecar's scope. */
export const hasSameClusters: IsUntouched = (changes, shape, currentPush, previous) => {
  if (!areOnlyVirtualServices(changes)) return false;
  if (shape.type === 'router') return !currentPush.features.onlyReferencedClusters;
  return hasSameServices(currentPush.sidecarScopeFor(shape), previous.sidecarScopeFor(shape));
};

/** VirtualServices and Sidecar objects affect endpoints only through the services in scope. */
export const hasSameEndpoints: IsUntouched = (changes, shape, currentPush, previous) => {
  if (!changes.every(({ kind }) => kind === 'VirtualService' || kind === 'Sidecar')) return false;
  return sameItems(currentPush.sidecarScopeFor(shape).services, previous.sidecarScopeFor(shape).services);
};

/** Listeners contain no HTTP routes. Of DestinationRules, they contain only settings for TCP and TLS connections. */
export const hasSameListeners: IsUntouched = (changes, shape, currentPush, previous) => {
  const rules = changes.filter(({ kind }) => kind === 'DestinationRule');
  if (!areOnlyVirtualServices(changes.filter((key) => !rules.includes(key)))) return false;
  if (shape.type === 'router' && rules.length > 0) return false;
  if (rules.some((key) => [currentPush, previous].some((push) => mayAffectConnections(key, shape, push)))) return false;
  if (shape.type === 'router') return hasSameGatewayConnections(shape, currentPush, previous);
  const [current, previousState] = [currentPush.sidecarScopeFor(shape), previous.sidecarScopeFor(shape)];
  if (current === previousState) return true;
  return (
    hasSameServices(current, previousState) &&
    current.outboundTrafficPolicy === previousState.outboundTrafficPolicy &&
    current.egressListeners.every((listener, index) => {
      const previousListener = previousState.egressListeners[index]!;
      return (
        listener.services === previousListener.services &&
        sameItems(
          virtualServicesOfConnections(listener.virtualServices),
          virtualServicesOfConnections(previousListener.virtualServices),
        )
      );
    })
  );
};

/** Ignores HTTP routes, which are not part of a gateway's listeners; these may have thousands of hosts. */
function hasSameGatewayConnections(shape: ProxyShape, currentPush: PushContext, previous: PushContext): boolean {
  const gateways = currentPush.gatewaysFor(shape);
  if (gateways !== previous.gatewaysFor(shape)) return false;
  return gateways.every((gateway) => {
    const [current, previousState] = [currentPush, previous].map((push) =>
      push.virtualServicesFor(gatewayName(gateway), shape.configNamespace),
    ) as [readonly ResolvedVirtualService[], readonly ResolvedVirtualService[]];
    return (
      current === previousState ||
      sameItems(virtualServicesOfConnections(current), virtualServicesOfConnections(previousState))
    );
  });
}

function areOnlyVirtualServices(changes: readonly ConfigKey[]): boolean {
  return changes.every(({ kind }) => kind === 'VirtualService');
}

function hasSameServices(a: SidecarScope, b: SidecarScope): boolean {
  return a.sidecar === b.sidecar && sameItems(a.services, b.services);
}
