/** What a proxy may reach, whatever kind of proxy it is. */

import type { ProxyView } from '../model/proxy.ts';
import type { PushContext } from '../model/push-context.ts';
import type { MergedDestinationRule } from '../model/resolved-rules.ts';
import type { Service } from '../model/service.ts';

export interface Reach {
  /** Oldest first. */
  readonly services: readonly Service[];
  serviceByHostname(hostname: string): Service | undefined;
  destinationRuleFor(service: Service): MergedDestinationRule | undefined;
}

/** A sidecar reaches what its scope lets it see; a gateway everything that is exported to its namespace. */
export function reachOf(view: ProxyView, push: PushContext): Reach {
  if (view.type === 'sidecar') return push.sidecarScopeFor(view);
  const namespace = view.configNamespace;
  return {
    services: push.servicesVisibleTo(namespace),
    serviceByHostname: (hostname) => push.serviceFor(hostname, namespace),
    destinationRuleFor: (service) => push.destinationRuleFor(namespace, service, view.labels),
  };
}
