/** The generators of the control plane, by the type URL of what they make. */
import type { ConfigKey } from '../model/config.ts';
import type { ProxyShape } from '../model/proxy-shape.ts';
import type { PushContext } from '../model/push-context.ts';
import { buildClusters } from './clusters/build.ts';
import { buildEndpoints, hostOfAssignment } from './endpoints/build.ts';
import { buildListeners } from './listeners/build.ts';
import { type Memory, noMemory, type RememberedType } from './memory.ts';
import { endpointProjection, type Projection, routeProjection } from './projection.ts';
import { Resource } from './resource.ts';
import { buildRoutes } from './routes/build.ts';
import { type IsUntouched, untouchedClusters, untouchedEndpoints, untouchedListeners } from './untouched.ts';

export {
  buildClusters,
  buildEndpoints,
  buildListeners,
  buildRoutes,
  type Memory,
  noMemory,
  type RememberedType,
  Resource,
};

export const clusterType = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
export const endpointType = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';
export const listenerType = 'type.googleapis.com/envoy.config.listener.v3.Listener';
export const routeType = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';

/** Which of the asked names a change can be about: those of the changed object's subject. */
export interface Narrowing {
  /** Kinds of which a changed object has one subject; a change of another kind can be about any name. */
  readonly kinds: ReadonlySet<string>;
  readonly subjectOfName: (name: string) => string;
  readonly subjectOfKey: (key: ConfigKey) => string;
}

interface Untouched {
  /** What of a shape the list depends on; absent: all of it. */
  readonly projection?: Projection;
  /** Whether a change that the tables let through leaves the type as it is after all. */
  readonly isUntouched?: IsUntouched;
}

/** `all`: a proxy has every resource of the type. `named`: it has those that it asks for. */
export type Generator =
  | (Untouched & {
      readonly scope: 'all';
      readonly build: (shape: ProxyShape, push: PushContext, memory?: Memory) => Resource[];
    })
  | (Untouched & {
      readonly scope: 'named';
      /** One for each name, or none for a name that means nothing. */
      readonly build: (shape: ProxyShape, push: PushContext, names: readonly string[], memory?: Memory) => Resource[];
      readonly narrowing?: Narrowing;
    });

const byHost: Narrowing = {
  kinds: new Set(['ServiceEntry', 'Endpoints']),
  subjectOfName: hostOfAssignment,
  subjectOfKey: ({ name }) => name,
};

export const generators: ReadonlyMap<string, Generator> = new Map<string, Generator>([
  [clusterType, { scope: 'all', build: buildClusters, isUntouched: untouchedClusters }],
  [
    endpointType,
    {
      scope: 'named',
      build: buildEndpoints,
      narrowing: byHost,
      isUntouched: untouchedEndpoints,
      projection: endpointProjection,
    },
  ],
  [listenerType, { scope: 'all', build: buildListeners, isUntouched: untouchedListeners }],
  [routeType, { scope: 'named', build: buildRoutes, projection: routeProjection }],
]);
