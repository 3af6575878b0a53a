import { expect, test } from 'vitest';
import { DepartedClusters } from './departed-clusters.ts';

const node = (id: string, verifiedIdentity?: string) => ({
  ...{ id, cluster: '', metadata: {} },
  ...(verifiedIdentity !== undefined && { verifiedIdentity }),
});
const clusters = { clusters: new Map(), assignments: new Map() };

test('DepartedClusters return the clusters of a client once, within a limited time, and only to the same identity', () => {
  const departed = new DepartedClusters(1_000);
  departed.add(node('a', 'x'), clusters, 0);
  expect(departed.take(node('a', 'y'), 1)).toBeUndefined();
  expect(departed.take(node('a', 'x'), 1)).toMatchObject(clusters);
  expect(departed.take(node('a', 'x'), 1)).toBeUndefined();
  departed.add(node('a'), clusters, 0);
  expect(departed.take(node('a'), 1_000)).toBeUndefined();
});

test('DepartedClusters drop the oldest client above the limit', () => {
  const departed = new DepartedClusters(1_000);
  for (let i = 0; i <= 10_000; i++) departed.add(node(`${i}`), clusters, 0);
  expect(departed.take(node('0'), 1)).toBeUndefined();
  expect(departed.take(node('10000'), 1)).toMatchObject(clusters);
});
