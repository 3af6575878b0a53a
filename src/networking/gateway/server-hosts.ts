/** Which hosts of virtual services a gateway's server serves (spec/discovery.md §8.7, virtual hosts). */
import { onceFor } from '../../model/collections/once-for.ts';
import { HostIndex } from '../../model/fields/host-index.ts';
import { hostIntersection } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { GatewayServer } from './merge-gateways.ts';
import { dnsName } from './placed-server.ts';

export interface ServedVirtualService {
  readonly service: ResolvedVirtualService;
  /** At least one. */
  readonly hosts: ReadonlySet<string>;
}

/**
 * The virtual services of a gateway that share names with the server, in order. Of two overlapping hosts the narrower
 * one is the shared name. A server's host may require a namespace of the virtual service (`.` is the gateway's own).
 *
 * @param hosts the server's hosts, or a part of them
 */
export function servedVirtualServices(
  server: GatewayServer,
  services: readonly ResolvedVirtualService[],
  hosts: readonly string[] = server.hosts,
): readonly ServedVirtualService[] {
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

/** Cached, because all servers of a gateway use it. */
const indexOf = onceFor(
  (services: readonly ResolvedVirtualService[]) => new HostIndex(services, ({ config }) => config.spec.hosts),
);

function allowsNamespace(serverHost: string, gatewayNamespace: string, namespace: string): boolean {
  const slash = serverHost.indexOf('/');
  if (slash === -1) return true;
  const namespacePattern = serverHost.slice(0, slash);
  return namespacePattern === '*' || namespace === (namespacePattern === '.' ? gatewayNamespace : namespacePattern);
}
