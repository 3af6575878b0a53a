import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { encodeResource } from '../xds/responses/encoding.ts';
import { resourceReferences } from './resource-references.ts';

test.each([
  ['EDS', 'fetches'],
  ['STRICT_DNS', 'does not fetch'],
  ['LOGICAL_DNS', 'does not fetch'],
  ['STATIC', 'does not fetch'],
  ['ORIGINAL_DST', 'does not fetch'],
] as const)('a cluster of type %s %s endpoints over EDS', (type, verb) => {
  for (const healthChecks of [[], [{}]]) {
    const value = Cluster_DiscoveryType[type];
    const cluster = create(ClusterSchema, { name: 'c', clusterDiscoveryType: { case: 'type', value }, healthChecks });
    expect(resourceReferences.fetchesEndpoints(encodeResource(ClusterSchema, cluster, 'c'))).toBe(verb === 'fetches');
  }
});

test.each([
  ['no locality', [], 'empty'],
  ['a locality without endpoints', [{ locality: { region: 'a' } }], 'empty'],
  ['an endpoint', [{ lbEndpoints: [{}] }], 'not empty'],
  ['many endpoints', [{ lbEndpoints: Array.from({ length: 1_000 }, () => ({ loadBalancingWeight: 7 })) }], 'not empty'],
] as const)('an assignment with $0 is $2', (_, endpoints, expected) => {
  const assignment = create(ClusterLoadAssignmentSchema, {
    clusterName: 'c',
    endpoints: structuredClone(endpoints) as never,
  });
  const encodedAssignment = encodeResource(ClusterLoadAssignmentSchema, assignment, 'c');
  expect(resourceReferences.isEmptyAssignment(encodedAssignment)).toBe(expected === 'empty');
});
