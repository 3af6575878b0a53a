/** The virtual services of a listener by the hosts that they route requests to. */
import { onceFor, onceForPair } from '../../model/collections/once-for.ts';
import { mostSpecific } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { ServiceGroup } from './service-groups.ts';

export type ByHost = ReadonlyMap<string, ResolvedVirtualService>;

/** Virtual services by host: of several of one host the oldest holds, the others are ignored (§8.5). */
export const oldestByHost = onceFor((services: readonly ResolvedVirtualService[]): ByHost => {
  const byHost = new Map<string, ResolvedVirtualService>();
  for (const service of services) {
    if (!service.config.spec.http?.length) continue;
    for (const host of service.config.spec.hosts) if (!byHost.has(host)) byHost.set(host, service);
  }
  return byHost;
});

/** For each of the groups, in their order, the virtual service that routes what is sent to it. */
export const virtualServicesOver = onceForPair(
  (groups: readonly ServiceGroup[], byHost: ByHost): readonly (ResolvedVirtualService | undefined)[] =>
    groups.map(({ service: { hostname } }) => {
      const exact = byHost.get(hostname);
      if (exact !== undefined) return exact;
      const host = mostSpecific(hostname, byHost);
      return host === undefined ? undefined : byHost.get(host);
    }),
);
