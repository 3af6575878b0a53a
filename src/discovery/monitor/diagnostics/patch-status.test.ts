import { expect, it } from 'vitest';
import { nodes, PatchedMesh } from '../../../../test/fixtures/given-patches.ts';
import { patchCounts, patchReports } from './patch-status.ts';

it('the patch status contains the patch results of each EnvoyFilter, with the reason', () => {
  const timeout = (port: number) =>
    `{applyTo: CLUSTER, match: {cluster: {portNumber: ${port}}}, patch: {operation: MERGE, value: {connect_timeout: 1s}}}`;
  const failingPatch = '{applyTo: CLUSTER, patch: {operation: ADD, value: {name: BlackHoleCluster}}}';
  const bootstrap = '{applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {}}}';
  const patchedMesh = new PatchedMesh({ patches: [timeout(80), timeout(5432), timeout(1), failingPatch, bootstrap] });
  const filters = patchedMesh.mesh.configs.EnvoyFilter;
  const patchFields = { name: 'shop/filter', patch: 'CLUSTER' };
  const unasked = [{ name: 'shop/filter', patch: 'BOOTSTRAP', result: 'waiting', count: 1 }];
  expect(filters.flatMap(patchCounts)).toEqual([{ ...patchFields, result: 'waiting', count: 4 }, ...unasked]);
  patchedMesh.resources('clusters', nodes.client);
  expect(filters.flatMap(patchCounts)).toEqual([
    { ...patchFields, result: 'applied', count: 2 },
    { ...patchFields, result: 'waiting', count: 1 },
    { ...patchFields, result: 'errored', count: 1 },
    ...unasked,
  ]);
  expect(patchReports(filters)[3]).toEqual({
    ...patchFields,
    field: 'configPatches[3]',
    result: 'errored',
    problem: 'there is already a cluster BlackHoleCluster',
  });
});
