/** The virtual services of a listener by the hosts that they route requests to. */
import { mostSpecific } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { ServiceGroup } from './service-groups.ts';

export type ByHost = ReadonlyMap<string, ResolvedVirtualService>;

const known = new WeakMap<readonly ResolvedVirtualService[], ByHost>();

/** Of several virtual services of one host the oldest holds; the others are ignored (§8.5). */
export function oldestByHost(services: readonly ResolvedVirtualService[]): ByHost {
  let byHost = known.get(services);
  if (byHost === undefined) {
    byHost = makeByHost(services);
    known.set(services, byHost);
  }
  return byHost;
}

function makeByHost(services: readonly ResolvedVirtualService[]): ByHost {
  const byHost = new Map<string, ResolvedVirtualService>();
  for (const service of services) {
    if (!service.config.spec.http?.length) continue;
    for (const host of service.config.spec.hosts) if (!byHost.has(host)) byHost.set(host, service);
  }
  return byHost;
}

type Over = readonly (ResolvedVirtualService | undefined)[];
const overGroups = new WeakMap<readonly ServiceGroup[], WeakMap<ByHost, Over>>();

/** For each of the groups, in their order, the virtual service that routes what is sent to it. */
export function virtualServicesOver(groups: readonly ServiceGroup[], byHost: ByHost): Over {
  const ofGroups = overGroups.get(groups) ?? new WeakMap<ByHost, Over>();
  overGroups.set(groups, ofGroups);
  let over = ofGroups.get(byHost);
  if (over === undefined) {
    over = groups.map(({ service: { hostname } }) => {
      const exact = byHost.get(hostname);
      if (exact !== undefined) return exact;
      const host = mostSpecific(hostname, byHost);
      return host === undefined ? undefined : byHost.get(host);
    });
    ofGroups.set(byHost, over);
  }
  return over;
}
