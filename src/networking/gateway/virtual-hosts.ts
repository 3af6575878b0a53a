/** Which hosts of a virtual service a gateway's server takes (spec/discovery.md §8.7, virtual hosts). */
import { hostIntersection } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import { dnsName, type GatewayServer } from './merge.ts';

/**
 * The names that both want: the narrower of the two. A server's host may name the namespace that the virtual service
 * must be in (`.` is the gateway's own).
 */
export function matchingHosts(server: GatewayServer, { config }: ResolvedVirtualService): readonly string[] {
  const hosts = new Set<string>();
  for (const serverHost of server.hosts) {
    if (!allowsNamespace(serverHost, server.gateway.namespace, config.namespace)) continue;
    for (const host of config.spec.hosts) {
      const both = hostIntersection(host, dnsName(serverHost));
      if (both !== undefined) hosts.add(both);
    }
  }
  return [...hosts];
}

function allowsNamespace(serverHost: string, gatewayNamespace: string, namespace: string): boolean {
  const slash = serverHost.indexOf('/');
  if (slash === -1) return true;
  const wanted = serverHost.slice(0, slash);
  return wanted === '*' || namespace === (wanted === '.' ? gatewayNamespace : wanted);
}
