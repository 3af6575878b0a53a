/** From a route's destination to the cluster behind it, for HTTP, TLS and TCP routes alike (spec/discovery.md §8.6). */
import type { Destination } from '../../model/kinds/virtual-service/virtual-service.ts';
import type { Service } from '../../model/services/service.ts';
import { namedBy } from './alias.ts';
import type { Reach } from './reach.ts';
import { outboundClusterName } from './resource-names.ts';

export interface ResolvedDestination {
  readonly cluster: string;
  readonly port: number;
  /** Absent when no service of the name is in reach: the cluster does not exist then, and requests fail. */
  readonly service: Service | undefined;
  /** Whose destination rule holds: the service, or another name for it that has one. */
  readonly ruled: Service | undefined;
}

/** Without a port: the service's only one, else the port of the listener. */
export function resolveDestination(destination: Destination, listenerPort: number, reach: Reach): ResolvedDestination {
  const { service, clustered } = namedBy(destination.host, reach);
  const port = destination.port?.number ?? (service?.ports.length === 1 ? service.ports[0]!.number : listenerPort);
  const host = clustered?.hostname ?? destination.host;
  return { cluster: outboundClusterName(port, destination.subset ?? '', host), port, service, ruled: clustered };
}
