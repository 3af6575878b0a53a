import { expect, test } from 'vitest';
import { UnroutedClusters } from './unrouted-clusters.ts';

test('a cluster without a route is late after the limit and is reported once', () => {
  const unrouted = new UnroutedClusters();
  unrouted.recordAdded('a', 1_000);
  unrouted.recordAdded('b', 2_000);
  unrouted.recordAdded('a', 3_000);
  expect(unrouted.takeLate(999)).toEqual([]);
  expect(unrouted.takeLate(1_000)).toEqual(['a']);
  expect(unrouted.takeLate(1_500)).toEqual([]);
});

test('a cluster is never late while a route names it, or once it is removed', () => {
  const unrouted = new UnroutedClusters();
  for (const name of ['routed', 'removed', 'waiting']) unrouted.recordAdded(name, 0);
  unrouted.removeRouted(new Set(['routed', 'other']));
  unrouted.recordRemoved('removed');
  expect(unrouted.takeLate(5_000)).toEqual(['waiting']);
});

test('no cluster is late for a proxy that does not acknowledge responses', () => {
  const unrouted = new UnroutedClusters();
  unrouted.recordAdded('a', 0);
  unrouted.clear();
  expect(unrouted.takeLate(5_000)).toEqual([]);
});
