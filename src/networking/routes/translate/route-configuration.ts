/** What all route configurations that are asked for by name have in common (spec/discovery.md §8.5). */
import { create } from '@bufbuild/protobuf';
import type {
  Route,
  VirtualHost,
  VirtualHost_TlsRequirementType,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { VirtualHostSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../gen/envoy/config/route/v3/route_pb.ts';

const maxDirectResponseBytes = 1_048_576;

/** @param allPorts the listener serves all ports: which one is meant is in the host that the client names. */
export function routeConfiguration(name: string, virtualHosts: VirtualHost[], allPorts = false): RouteConfiguration {
  return create(RouteConfigurationSchema, {
    name,
    virtualHosts,
    // A cluster may come later than the route to it: requests fail until then, and the rest works.
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
