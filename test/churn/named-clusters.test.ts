import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { RouteConfigurationSchema } from '../../src/gen/envoy/config/route/v3/route_pb.ts';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { ProtobufFields } from '../sidecars/protobuf-fields.ts';
import { ResourceBatches } from '../sidecars/resource-batches.ts';
import { namedClusters } from './named-clusters.ts';

const clusterOf = (service: number): string => `outbound|8080||svc-${service}.ns-1.svc.cluster.local`;

const routes = create(RouteConfigurationSchema, {
  name: '8080',
  virtualHosts: [1, 2].map((service) => ({
    name: `h${service}`,
    domains: ['*'],
    routes: [
      {
        match: { pathSpecifier: { case: 'prefix' as const, value: '/' } },
        action: {
          case: 'route' as const,
          value: { clusterSpecifier: { case: 'cluster' as const, value: clusterOf(service) } },
        },
      },
    ],
  })),
});

test.each([
  ['state of the world', false],
  ['delta', true],
])('cluster names are extracted from a route response (%s)', (_, isDelta) => {
  const resource = anyPack(RouteConfigurationSchema, routes);
  const message = Buffer.from(
    isDelta
      ? toBinary(DeltaDiscoveryResponseSchema, create(DeltaDiscoveryResponseSchema, { resources: [{ resource }] }))
      : toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, { resources: [resource] })),
  );
  const fields = new ProtobufFields(message);
  while (fields.next()) if (fields.field === 2) break;
  const resources = message.subarray(fields.recordStart, fields.end);
  const batch = new ResourceBatches(isDelta).of('RDS', resources);
  expect(namedClusters(batch, resources, isDelta)).toEqual(new Map([['8080', new Set([clusterOf(1), clusterOf(2)])]]));
});
