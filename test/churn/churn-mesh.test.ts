import { describe, expect, test } from 'vitest';
import {
  activeNamespaces,
  busyNamespaces,
  Changes,
  filesOf,
  initialFiles,
  quietNamespaces,
  turnMs,
} from './churn-mesh.ts';

const many = (seed: number): ReturnType<Changes['next']>[] => {
  const changes = new Changes(seed, 20);
  return Array.from({ length: 2_000 }, (_, i) => changes.next(i * 50));
};

describe('changes', () => {
  test('are the same for the same seed', () => {
    expect(many(7)).toEqual(many(7));
    expect(many(8)).not.toEqual(many(7));
  });

  test('are of all kinds, in all busy namespaces, in no quiet one', () => {
    expect(new Set(many(1).map(({ kind }) => kind))).toEqual(
      new Set(['endpoints', 'route', 'rule', 'leave', 'return']),
    );
    expect(new Set(many(1).map(({ namespace }) => namespace))).toEqual(new Set(busyNamespaces));
    expect(quietNamespaces.some((namespace) => activeNamespaces(0).includes(namespace))).toBe(false);
  });

  test('touch only services that are there; only those that left return', () => {
    const gone = new Set<string>();
    for (const { kind, namespace, service } of many(3)) {
      const name = `${namespace}/${service}`;
      expect(gone.has(name)).toBe(kind === 'return');
      if (kind === 'leave') gone.add(name);
      if (kind === 'return') gone.delete(name);
    }
  });
});

test('half of the busy namespaces change at a time, each of them rests for a while', () => {
  for (let turn = 0; turn < 16; turn++) expect(activeNamespaces(turn * turnMs)).toHaveLength(busyNamespaces.length / 2);
  const rested = busyNamespaces.filter((namespace) =>
    Array.from({ length: 8 }, (_, turn) => activeNamespaces(turn * turnMs)).some(
      (active) => !active.includes(namespace),
    ),
  );
  expect(rested).toEqual(busyNamespaces);
});

test('a change of revision is a change of content', () => {
  const change = { namespace: 'busy-1', service: 3 };
  for (const kind of ['endpoints', 'route', 'rule'] as const) {
    expect(filesOf({ ...change, kind, revision: 1 })).not.toEqual(filesOf({ ...change, kind, revision: 2 }));
  }
  expect(Object.keys(initialFiles(2))).toHaveLength(10 * (1 + 2 * 3));
});
