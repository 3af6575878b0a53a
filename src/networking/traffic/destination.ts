import type { Destination } from '../../model/kinds/virtual-service/virtual-service.ts';
import type { Service } from '../../model/services/service.ts';
import { resolveAlias } from './alias.ts';
import type { ProxyReach } from './reach.ts';
import { outboundClusterName } from './resource-names.ts';

export interface ResolvedDestination {
  readonly cluster: string;
  readonly port: number;
  /** Absent if the proxy cannot reach the service. The cluster then does not exist, and requests fail. */
  readonly service: Service | undefined;
  /** The service or alias whose DestinationRule applies. */
  readonly serviceWithRule: Service | undefined;
}

/** The port defaults to the only port of the service, then to the listener's port. */
export function resolveDestination(
  destination: Destination,
  listenerPort: number,
  reach: ProxyReach,
): ResolvedDestination {
  const { service, clusteredService } = resolveAlias(destination.host, reach);
  const port = destination.port?.number ?? (service?.ports.length === 1 ? service.ports[0]!.number : listenerPort);
  const host = clusteredService?.hostname ?? destination.host;
  return {
    cluster: outboundClusterName(port, destination.subset ?? '', host),
    port,
    service,
    serviceWithRule: clusteredService,
  };
}
