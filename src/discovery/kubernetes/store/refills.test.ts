import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { KubernetesObject } from '../api-server.ts';
import { NamespaceShares } from './namespace-shares.ts';
import { ObjectStore, rejectionReasonOf } from './object-store.ts';
import { minRefillIntervalMs, Refills } from './refills.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const object = (name: string, version = '1'): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'Service', spec: { text: 'x'.repeat(1_000) } },
  metadata: { name, namespace: 'bank', uid: `uid-${name}`, resourceVersion: version },
});

/** A namespace with `count` objects and space for seven. */
function createNamespace(count: number) {
  const server = new Map(Array.from({ length: count }, (_, at) => [`s${at}`, object(`s${at}`)]));
  const store = new ObjectStore({ shares: new NamespaceShares(10_000) });
  for (const one of server.values()) store.apply({ type: 'ADDED', object: one });
  const lists: string[] = [];
  const reportedKeys: string[] = [];
  const faults = { failing: false, before: (): void => {} };
  const refills = new Refills([
    {
      store,
      async list(namespace, onItem) {
        lists.push(namespace);
        const all = [...server.values()];
        faults.before();
        if (faults.failing) throw new Error('no answer');
        for (const one of all) onItem(one);
      },
      notifyReaders: (changes) => {
        for (const { event, key } of changes) reportedKeys.push(`${event} ${key}`);
      },
    },
  ]);
  const remove = (...names: string[]): void => {
    for (const name of names) {
      server.delete(name);
      store.apply({ type: 'DELETED', object: object(name, '2') });
    }
    refills.checkDue();
  };
  const keptNames = (): string[] =>
    [...store.values()].filter((one) => rejectionReasonOf(one) === undefined).map(({ metadata }) => metadata.name);
  return { store, lists, reported: reportedKeys, faults, remove, kept: keptNames };
}
const runPending = () => vi.advanceTimersByTimeAsync(0);

it('rejected objects are accepted without a change when others are deleted', async () => {
  const { remove, kept, reported, store } = createNamespace(9);
  expect(kept()).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6']);
  remove('s0', 's1', 's2', 's3');
  await runPending();
  expect(kept()).toEqual(['s4', 's5', 's6', 's7', 's8']);
  expect(reported).toEqual(['update bank/s7', 'update bank/s8']);
  expect(store.refusedCounts.size).toBe(0);
});

it('objects are not listed again while the namespace is nearly full or if no object was rejected', async () => {
  const fullNamespace = createNamespace(9);
  fullNamespace.remove('s0');
  const smallNamespace = createNamespace(3);
  smallNamespace.remove('s0');
  await runPending();
  expect([fullNamespace.lists, smallNamespace.lists]).toEqual([[], []]);
});

it('objects are listed at most once in 30 s after frequent changes, and a failed list is repeated after 30 s', async () => {
  const { remove, lists, faults, kept } = createNamespace(12);
  faults.failing = true;
  remove('s0', 's1', 's2', 's3');
  await runPending();
  remove('s4');
  await runPending();
  expect(lists).toEqual(['bank']);
  faults.failing = false;
  await vi.advanceTimersByTimeAsync(minRefillIntervalMs);
  expect(lists).toEqual(['bank', 'bank']);
  expect(kept()).toEqual(['s5', 's6', 's7', 's8', 's9', 's10', 's11']);
});

it('objects that are deleted during the list remain deleted', async () => {
  const { remove, faults, kept } = createNamespace(9);
  faults.before = () => {
    faults.before = () => {};
    remove('s8');
  };
  remove('s0', 's1', 's2', 's3');
  await runPending();
  expect(kept()).toEqual(['s4', 's5', 's6', 's7']);
});
