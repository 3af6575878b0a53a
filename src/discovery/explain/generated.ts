/** Generates the resources of a node, including those that it requests by name. */
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ProxyConfiguration } from '../../networking/explain/proxy-configuration.ts';
import {
  buildClusters,
  buildEndpoints,
  buildListeners,
  buildRoutes,
  type EnvoyResource,
  explainEndpoints,
} from '../../networking/index.ts';

/** The generated messages must not be copied, because their origins are recorded by identity. */
export function generatedConfiguration(shape: ProxyShape, push: PushContext): ProxyConfiguration {
  const clusters = messagesByName<Cluster>(buildClusters(shape, push));
  const listeners = buildListeners(shape, push).map(({ message }) => message as Listener);
  const requestedNames = [...clusters.values()].flatMap(({ name, edsClusterConfig: eds }) =>
    eds ? [eds.serviceName || name] : [],
  );
  return {
    listeners,
    clusters,
    routes: messagesByName<RouteConfiguration>(buildRoutes(shape, push, [...new Set(listeners.flatMap(routeNames))])),
    endpoints: messagesByName<ClusterLoadAssignment>(buildEndpoints(shape, push, [...new Set(requestedNames)])),
    // This command does not fetch keys from a jwksUri.
    lacksFetchedKeys: true,
    explainEndpoints: (cluster) => explainEndpoints(cluster, shape, push),
  };
}

function messagesByName<Message>(resources: readonly EnvoyResource[]): Map<string, Message> {
  return new Map(resources.map(({ name, message }) => [name, message as Message]));
}

function routeNames({ filterChains, defaultFilterChain }: Listener): readonly string[] {
  return [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])]
    .flatMap(({ filters }) => filters)
    .flatMap(({ configType }) => {
      if (configType.case !== 'typedConfig') return [];
      const manager = anyUnpack(configType.value, HttpConnectionManagerSchema);
      return manager?.routeSpecifier.case === 'rds' ? [manager.routeSpecifier.value.routeConfigName] : [];
    });
}
