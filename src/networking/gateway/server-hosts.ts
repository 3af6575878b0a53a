/** Which hosts of virtual services a gateway's server takes (spec/discovery.md §8.7, virtual hosts). */
import { onceFor } from '../../model/collections/once-for.ts';
import { HostIndex } from '../../model/fields/host-index.ts';
import { hostIntersection } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { GatewayServer } from './merge-gateways.ts';
import { dnsName } from './placed-server.ts';

/** A virtual service that a server takes hosts of. */
export interface TakenService {
  readonly service: ResolvedVirtualService;
  /** The hosts, at least one. */
  readonly hosts: ReadonlySet<string>;
}

/**
 * Of the virtual services of a gateway those that share names with the server, in their order, and these names: of two hosts
 * the narrower one. A server's host may name the namespace that the virtual service must be in (`.` is the gateway's own).
 *
 * @param hosts the server's; others when some of them do not count
 */
export function takenServices(
  server: GatewayServer,
  services: readonly ResolvedVirtualService[],
  hosts: readonly string[] = server.hosts,
): readonly TakenService[] {
  const index = indexOf(services);
  const taken = new Map<ResolvedVirtualService, { place: number; hosts: Set<string> }>();
  for (const serverHost of hosts) {
    const name = dnsName(serverHost);
    for (const { item, host, place } of index.overlapping(name)) {
      if (!allowsNamespace(serverHost, server.gateway.namespace, item.config.namespace)) continue;
      const known = taken.get(item);
      const both = hostIntersection(host, name)!;
      if (known === undefined) taken.set(item, { place, hosts: new Set([both]) });
      else known.hosts.add(both);
    }
  }
  return [...taken]
    .sort(([, a], [, b]) => a.place - b.place)
    .map(([service, { hosts: both }]) => ({ service, hosts: both }));
}

/** Each server of a gateway looks through the same one. */
const indexOf = onceFor(
  (services: readonly ResolvedVirtualService[]) => new HostIndex(services, ({ config }) => config.spec.hosts),
);

function allowsNamespace(serverHost: string, gatewayNamespace: string, namespace: string): boolean {
  const slash = serverHost.indexOf('/');
  if (slash === -1) return true;
  const wanted = serverHost.slice(0, slash);
  return wanted === '*' || namespace === (wanted === '.' ? gatewayNamespace : wanted);
}
