import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { encodeResource } from '../xds/responses/encoding.ts';
import { resourceReferences } from './resource-references.ts';

test.each([
  ['EDS', true],
  ['STRICT_DNS', false],
  ['LOGICAL_DNS', false],
  ['STATIC', false],
  ['ORIGINAL_DST', false],
] as const)('a cluster of type %s uses EDS: %s', (type, expected) => {
  for (const healthChecks of [[], [{}]]) {
    const value = Cluster_DiscoveryType[type];
    const cluster = create(ClusterSchema, { name: 'c', clusterDiscoveryType: { case: 'type', value }, healthChecks });
    expect(resourceReferences.fetchesEndpoints(encodeResource(ClusterSchema, cluster, 'c'))).toBe(expected);
  }
});

test.each([
  ['no locality', [], true],
  ['a locality without endpoints', [{ locality: { region: 'a' } }], true],
  ['an endpoint', [{ lbEndpoints: [{}] }], false],
  ['many endpoints', [{ lbEndpoints: Array.from({ length: 1_000 }, () => ({ loadBalancingWeight: 7 })) }], false],
] as const)('an assignment with %s counts as empty: %s', (_, endpoints, expected) => {
  const assignment = create(ClusterLoadAssignmentSchema, {
    clusterName: 'c',
    endpoints: structuredClone(endpoints) as never,
  });
  const encodedAssignment = encodeResource(ClusterLoadAssignmentSchema, assignment, 'c');
  expect(resourceReferences.isEmptyAssignment(encodedAssignment)).toBe(expected);
});
