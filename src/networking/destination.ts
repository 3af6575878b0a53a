/** From a route's destination to the cluster behind it, for HTTP, TLS and TCP routes alike (spec/discovery.md §8.6). */
import type { Destination } from '../model/kinds/virtual-service.ts';
import type { Service } from '../model/service.ts';
import { serviceBehind } from '../model/service-alias.ts';
import { outboundClusterName } from './names.ts';
import type { Reach } from './reach.ts';

export interface ResolvedDestination {
  readonly cluster: string;
  readonly port: number;
  /** Absent when no service of the name is in reach: the cluster does not exist then, and requests fail. */
  readonly service: Service | undefined;
}

/** Without a port: the service's only one, else the port of the listener. */
export function resolveDestination(destination: Destination, listenerPort: number, reach: Reach): ResolvedDestination {
  const service = serviceBehind(reach.serviceByHostname(destination.host), (host) => reach.serviceByHostname(host));
  const port = destination.port?.number ?? (service?.ports.length === 1 ? service.ports[0]!.number : listenerPort);
  // An alias has no cluster of its own.
  const host = service?.hostname ?? destination.host;
  return { cluster: outboundClusterName(port, destination.subset ?? '', host), port, service };
}
