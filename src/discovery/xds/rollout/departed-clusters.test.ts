import { expect, test } from 'vitest';
import { DepartedClusters } from './departed-clusters.ts';

const node = (id: string, verifiedIdentity?: string) => ({
  ...{ id, cluster: '', metadata: {} },
  ...(verifiedIdentity !== undefined && { verifiedIdentity }),
});
const clusters = { clusters: new Map(), assignments: new Map() };

test('DepartedClusters return the clusters of a client once, within a limited time, and only to the same identity', () => {
  const departedClusters = new DepartedClusters(1_000);
  departedClusters.add(node('a', 'x'), clusters, 0);
  expect(departedClusters.takeDeparted(node('a', 'y'), 1)).toBeUndefined();
  expect(departedClusters.takeDeparted(node('a', 'x'), 1)).toMatchObject(clusters);
  expect(departedClusters.takeDeparted(node('a', 'x'), 1)).toBeUndefined();
  departedClusters.add(node('a'), clusters, 0);
  expect(departedClusters.takeDeparted(node('a'), 1_000)).toBeUndefined();
});

test('DepartedClusters drop the oldest client above the limit', () => {
  const departedClusters = new DepartedClusters(1_000);
  for (let i = 0; i <= 10_000; i++) departedClusters.add(node(`${i}`), clusters, 0);
  expect(departedClusters.takeDeparted(node('0'), 1)).toBeUndefined();
  expect(departedClusters.takeDeparted(node('10000'), 1)).toMatchObject(clusters);
});
