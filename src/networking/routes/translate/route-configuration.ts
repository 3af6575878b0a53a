import { create } from '@bufbuild/protobuf';
import type {
  Route,
  VirtualHost,
  VirtualHost_TlsRequirementType,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { VirtualHostSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../gen/envoy/config/route/v3/route_pb.ts';

const maxDirectResponseBytes = 1_048_576;

/** @param allPorts whether the listener serves all ports, so that virtual hosts match the port in the host header */
export function routeConfiguration(name: string, virtualHosts: VirtualHost[], allPorts = false): RouteConfiguration {
  return create(RouteConfigurationSchema, {
    name,
    virtualHosts,
    // Envoy may receive a cluster after its route. Until then, only requests of that route fail.
    validateClusters: false,
    ignorePortInHostMatching: !allPorts,
    maxDirectResponseBodySizeBytes: maxDirectResponseBytes,
  });
}

export function virtualHost(
  name: string,
  domains: readonly string[],
  routes: Route[],
  requireTls?: VirtualHost_TlsRequirementType,
): VirtualHost {
  return create(VirtualHostSchema, {
    name,
    domains: [...domains],
    routes,
    includeRequestAttemptCount: true,
    ...(requireTls !== undefined && { requireTls }),
  });
}
