import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import {
  clusterType,
  endpointType,
  listenerType,
  routeType,
  secretType,
} from '../../../machines/discovery/xds/ads-types.ts';
import type { StreamKind } from './stream/incoming-stream.ts';

const aggregatedService = '/envoy.service.discovery.v3.AggregatedDiscoveryService';

/** Package and service, plural in method names, type. */
const separateServices = [
  ['listener.v3.ListenerDiscoveryService', 'Listeners', listenerType],
  ['cluster.v3.ClusterDiscoveryService', 'Clusters', clusterType],
  ['route.v3.RouteDiscoveryService', 'Routes', routeType],
  ['endpoint.v3.EndpointDiscoveryService', 'Endpoints', endpointType],
  ['secret.v3.SecretDiscoveryService', 'Secrets', secretType],
] as const;

export const xdsMethods: readonly StreamKind[] = [
  { path: `${aggregatedService}/StreamAggregatedResources`, isDelta: false, onlyType: null },
  { path: `${aggregatedService}/DeltaAggregatedResources`, isDelta: true, onlyType: null },
  ...separateServices.flatMap(([service, plural, onlyType]) => [
    { path: `/envoy.service.${service}/Stream${plural}`, isDelta: false, onlyType },
    { path: `/envoy.service.${service}/Delta${plural}`, isDelta: true, onlyType },
  ]),
];

/** This server parses and frames messages itself. */
export function rawStream(path: string): MethodDefinition<Buffer, Buffer> {
  const identity = (bytes: Buffer): Buffer => bytes;
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

export const xdsService: ServiceDefinition = Object.fromEntries(xdsMethods.map(({ path }) => [path, rawStream(path)]));
