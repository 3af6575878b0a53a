/** The generators of the control plane, by the type URL of what they make. */
import type { ProxyView } from '../model/proxy.ts';
import type { PushContext } from '../model/push-context.ts';
import { buildClusters } from './clusters/build.ts';
import { buildEndpoints } from './endpoints/build.ts';
import { buildListeners } from './listeners/build.ts';
import type { Resource } from './resource.ts';
import { buildRoutes } from './routes/build.ts';

export type { Resource };
export { buildClusters, buildEndpoints, buildListeners, buildRoutes };

export const clusterType = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
export const endpointType = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';
export const listenerType = 'type.googleapis.com/envoy.config.listener.v3.Listener';
export const routeType = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';

/** `all`: a proxy has every resource of the type. `named`: it has those that it asks for. */
export type Generator =
  | { readonly scope: 'all'; readonly build: (view: ProxyView, push: PushContext) => Resource[] }
  | {
      readonly scope: 'named';
      readonly build: (view: ProxyView, push: PushContext, names: readonly string[]) => Resource[];
    };

export const generators: ReadonlyMap<string, Generator> = new Map<string, Generator>([
  [clusterType, { scope: 'all', build: buildClusters }],
  [endpointType, { scope: 'named', build: buildEndpoints }],
  [listenerType, { scope: 'all', build: buildListeners }],
  [routeType, { scope: 'named', build: buildRoutes }],
]);
