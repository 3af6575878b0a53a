import { clusterType, endpointType, listenerType, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import {
  type ClusterLoadAssignment,
  ClusterLoadAssignmentSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { buildEndpoints } from '../endpoints/build.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { EnvoyResource } from '../messages/resource.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { clientListener } from './client-listener.ts';
import { grpcCluster } from './cluster.ts';
import { grpcAssignment } from './endpoints.ts';
import { type Limitation, limitationText, type WithLimitations } from './limitation.ts';
import { grpcRouteConfiguration } from './route-configuration.ts';
import { serverListener } from './server-listener.ts';
import { clientTarget, serverAddressIn } from './target-name.ts';

export interface GrpcGenerator {
  readonly scope: 'named';
  readonly build: (shape: ProxyShape, push: PushContext, names: readonly string[], memory?: Memory) => EnvoyResource[];
}

function buildListener(name: string, shape: ProxyShape, push: PushContext): WithLimitations<Listener | undefined> {
  const address = serverAddressIn(name);
  if (address !== undefined) return serverListener(name, address, shape, push);
  const target = clientTarget(name, shape, proxyReachOf(shape, push));
  if (typeof target === 'string') {
    return {
      message: undefined,
      limitations: [{ origins: [], text: `target ${JSON.stringify(name.slice(0, maxQuotedLength))}: ${target}` }],
    };
  }
  return { message: clientListener(name, target), limitations: [] };
}

/** Maximum length of a client's text in messages. */
const maxQuotedLength = 256;

const builders = [
  [listenerType, ListenerSchema, buildListener],
  [routeType, RouteConfigurationSchema, grpcRouteConfiguration],
  [clusterType, ClusterSchema, grpcCluster],
] as const;

function buildAssignments(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  return buildEndpoints(shape, push, names, cache).map(({ name, message, dependsOn }) => {
    return new EnvoyResource(
      name,
      ClusterLoadAssignmentSchema,
      grpcAssignment(message as ClusterLoadAssignment),
      dependsOn,
    );
  });
}

export function grpcResources(shape: ProxyShape, push: PushContext) {
  return {
    listener: (name: string) => buildListener(name, shape, push),
    routes: (name: string) => grpcRouteConfiguration(name, shape, push),
    cluster: (name: string) => grpcCluster(name, shape, push),
    endpoints: (name: string) => buildAssignments(shape, push, [name])[0]?.message as ClusterLoadAssignment | undefined,
  };
}

export const grpcGenerators: ReadonlyMap<string, GrpcGenerator> = new Map<string, GrpcGenerator>([
  ...builders.map(([typeUrl, schema, build]): [string, GrpcGenerator] => [
    typeUrl,
    {
      scope: 'named',
      build: (shape, push, names) =>
        names.flatMap((name) => {
          const { message, limitations } = build(name, shape, push);
          storeLimitations(push, shape, typeUrl, name, limitations);
          return message === undefined ? [] : [new EnvoyResource(name, schema, message)];
        }),
    },
  ]),
  [endpointType, { scope: 'named', build: buildAssignments }],
]);

/** Maximum resources per push context with cached limitations. All clients of a shape read them after each push. */
const maxCachedNames = 8_192;
const maxCachedNameLength = 512;
const cachedLimitations = new WeakMap<PushContext, Map<string, readonly Limitation[]>>();
const shapeNumbers = new WeakMap<ProxyShape, number>();
let shapeCount = 0;

function storeLimitations(
  push: PushContext,
  shape: ProxyShape,
  typeUrl: string,
  name: string,
  limitations: readonly Limitation[],
): void {
  const limitationsByKey = cachedLimitations.get(push) ?? new Map<string, readonly Limitation[]>();
  cachedLimitations.set(push, limitationsByKey);
  if (limitationsByKey.size < maxCachedNames && name.length <= maxCachedNameLength)
    limitationsByKey.set(cacheKey(shape, typeUrl, name), limitations.slice(0, maxLimitations));
}

function cacheKey(shape: ProxyShape, typeUrl: string, name: string): string {
  const number = shapeNumbers.get(shape) ?? ++shapeCount;
  shapeNumbers.set(shape, number);
  return `${number} ${typeUrl} ${name}`;
}

/** Maximum number of limitations reported for a resource, and for a type of a client. */
export const maxLimitations = 32;
/** Maximum resources of a type that are checked for one client. */
export const maxCheckedNames = 256;

export function grpcLimitations(
  typeUrl: string,
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
): readonly Limitation[] {
  const builderEntry = builders.find(([type]) => type === typeUrl);
  if (builderEntry === undefined) return [];
  const allLimitations = names.slice(0, maxCheckedNames).flatMap((name): readonly Limitation[] => {
    const cachedList = cachedLimitations.get(push)?.get(cacheKey(shape, typeUrl, name));
    if (cachedList !== undefined) return cachedList;
    const { limitations } = builderEntry[2](name, shape, push);
    storeLimitations(push, shape, typeUrl, name, limitations);
    return limitations;
  });
  return [...new Map(allLimitations.map((limitation) => [limitationText(limitation), limitation])).values()].slice(
    0,
    maxLimitations,
  );
}
