/** The cost of editing an object does not grow with the number of objects (0.1 ms for 50,000 objects). */
import { describe, expect, it } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import type { Config } from '../../../model/config/config.ts';
import { ConfigSnapshot } from './config-snapshot.ts';

/** Number of comparisons of objects. */
let comparisons = 0;

function route(number: number, version = 0): Config {
  return {
    ...{ kind: 'VirtualService', apiVersion: 'networking.istio.io/v1', name: `route-${number}`, namespace: 'shop' },
    ...{ labels: {}, annotations: {}, resourceVersion: `${number}.${version}`, spec: { hosts: [] } },
    get creationTimestamp() {
      comparisons++;
      return 0;
    },
  };
}

const keyOf = ({ kind, namespace, name }: Config): string => `${kind}/${namespace}/${name}`;

function snapshotOf(count: number): ConfigSnapshot {
  return new ConfigSnapshot(Array.from({ length: count }, (_, number) => route(number)));
}

/** Yields versions, each with one object replaced, added or removed. */
function* versionsOf(snapshot: ConfigSnapshot, count: number): Generator<ConfigSnapshot> {
  let last = snapshot;
  for (let step = 0; step < 100; step++) {
    const number = (step * 7_919) % count;
    const edit: readonly [string, Config | undefined] =
      step % 3 === 0
        ? [keyOf(route(number)), route(number, step)]
        : step % 3 === 1
          ? [keyOf(route(count + step)), route(count + step)]
          : [keyOf(route(number)), undefined];
    last = last.withEdits(new Map([edit]));
    yield last;
  }
}

/** Heap bytes when garbage collection frees no more memory. Earlier test files share the process. */
async function settledHeap(): Promise<number> {
  let last = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20; round++) {
    await collectGarbage();
    const { heapUsed } = process.memoryUsage();
    if (Math.abs(last - heapUsed) < 20_000) return heapUsed;
    last = heapUsed;
  }
  return last;
}

async function bytesPerEdit(count: number): Promise<number> {
  const snapshot = snapshotOf(count);
  const previous = await settledHeap();
  const versions = [...versionsOf(snapshot, count)];
  const heapGrowth = (await settledHeap()) - previous;
  expect(versions.length + snapshot.byKey.size).toBe(count + 100);
  return heapGrowth / versions.length;
}

function comparisonsPerEdit(count: number): number {
  const snapshot = snapshotOf(count);
  comparisons = 0;
  const versions = [...versionsOf(snapshot, count)];
  return comparisons / versions.length;
}

describe('editing one object of a snapshot', () => {
  it('takes as much memory with 40,000 objects as with 4,000, because unchanged objects are shared', async () => {
    // A copy of 40,000 references would take 320,000 bytes.
    expect(await bytesPerEdit(4_000)).toBeLessThan(20_000);
    expect(await bytesPerEdit(40_000)).toBeLessThan(20_000);
  });

  it('takes about as many comparisons with 40,000 objects as with 4,000', () => {
    const [fewComparisons, manyComparisons] = [comparisonsPerEdit(4_000), comparisonsPerEdit(40_000)];
    expect(manyComparisons).toBeLessThan(2 * fewComparisons);
    expect(manyComparisons).toBeLessThan(150);
  });

  it('does not modify the previous snapshot, and reuses the arrays of other kinds', () => {
    const previous = new ConfigSnapshot([route(1), route(2), { ...route(3), kind: 'Gateway' }]);
    const set = previous.set;
    const nextSnapshot = previous.withEdits(new Map([[keyOf(route(1)), undefined]]));
    expect(previous.set.VirtualService.map(({ name }) => name)).toEqual(['route-1', 'route-2']);
    expect(nextSnapshot.set.VirtualService.map(({ name }) => name)).toEqual(['route-2']);
    expect(nextSnapshot.set.Gateway).toBe(set.Gateway);
    expect(nextSnapshot.set.VirtualService).toBe(nextSnapshot.set.VirtualService);
    expect([previous.byKey.size, nextSnapshot.byKey.size]).toEqual([3, 2]);
  });
});
