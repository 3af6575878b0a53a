import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { HostIndex } from '../../model/fields/host-index.ts';
import { hostIntersection } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { GatewayServer } from './merge-gateways.ts';
import { dnsName } from './placed-server.ts';

export interface ServedVirtualService {
  readonly virtualService: ResolvedVirtualService;
  readonly hosts: ReadonlySet<string>;
}

/**
 * Returns a gateway's VirtualServices whose hosts overlap with those of the server, in order. Of two overlapping hosts, the narrower is served. A
 * server host may require the VirtualService's namespace (`.` for the Gateway's own).
 */
export function servedVirtualServices(
  server: GatewayServer,
  virtualServices: readonly ResolvedVirtualService[],
  hosts: readonly string[] = server.hosts,
): readonly ServedVirtualService[] {
  const index = indexOf(virtualServices);
  const servedServices = new Map<ResolvedVirtualService, { place: number; hosts: Set<string> }>();
  for (const serverHost of hosts) {
    const name = dnsName(serverHost);
    for (const { item, host, itemIndex } of index.overlappingEntries(name)) {
      if (!allowsNamespace(serverHost, server.gateway.namespace, item.config.namespace)) continue;
      const existingEntry = servedServices.get(item);
      const sharedHost = hostIntersection(host, name)!;
      if (existingEntry === undefined) servedServices.set(item, { place: itemIndex, hosts: new Set([sharedHost]) });
      else existingEntry.hosts.add(sharedHost);
    }
  }
  return [...servedServices]
    .sort(([, a], [, b]) => a.place - b.place)
    .map(([virtualService, { hosts: sharedHosts }]) => ({ virtualService, hosts: sharedHosts }));
}

const indexOf = memoizeByObject(
  (virtualServices: readonly ResolvedVirtualService[]) =>
    new HostIndex(virtualServices, ({ config }) => config.spec.hosts),
);

function allowsNamespace(serverHost: string, gatewayNamespace: string, namespace: string): boolean {
  const slash = serverHost.indexOf('/');
  if (slash === -1) return true;
  const namespacePattern = serverHost.slice(0, slash);
  return namespacePattern === '*' || namespace === (namespacePattern === '.' ? gatewayNamespace : namespacePattern);
}
