import { describe, expect, test } from 'vitest';
import { activeNamespaces, Changes, filesOf, initialFiles, rotationMs } from './churn-mesh.ts';
import { busyNamespaces, changeKinds, hostOf, namespaces, quietNamespaces } from './churn-model.ts';

const drawChanges = (seed: number): ReturnType<Changes['next']>[] => {
  const changes = new Changes(seed, 20);
  return Array.from({ length: 4_000 }, (_, i) => changes.next(i * 50));
};

describe('changes', () => {
  test('changes are equal for equal seeds', () => {
    expect(drawChanges(7)).toEqual(drawChanges(7));
    expect(drawChanges(8)).not.toEqual(drawChanges(7));
  });

  test('changes have all types, occur in all busy namespaces, and never affect a quiet one', () => {
    const changes = drawChanges(1);
    expect(new Set(changes.map(({ kind }) => kind))).toEqual(new Set(changeKinds));
    expect(new Set(changes.map(({ namespace }) => namespace))).toEqual(new Set(busyNamespaces));
    const affected = new Set(changes.flatMap(({ affected }) => [...affected.namespaces]));
    expect(quietNamespaces.filter((namespace) => affected.has(namespace))).toEqual([]);
  });

  test('only existing services are changed or removed, and only removed services are added again', () => {
    const removedServices = new Set<string>();
    for (const change of drawChanges(3)) {
      const { kind } = change;
      if (kind === 'gateway route' || kind === 'sidecar') continue;
      const name = hostOf(change);
      expect(removedServices.has(name)).toBe(kind === 'return');
      if (kind === 'leave') removedServices.add(name);
      if (kind === 'return') removedServices.delete(name);
    }
  });

  test("a change of a service's exportTo leaves everything else of the service unchanged", () => {
    const changes = new Changes(1, 20);
    const endpointChange = changes.nextIn('ns-1', 'endpoints')!;
    for (;;) {
      const next = changes.nextIn('ns-1', 'export')!;
      if (next.service !== endpointChange.service) continue;
      const [previousText, nextText] = [endpointChange, next].map((change) => Object.values(filesOf(change))[0]!);
      expect(nextText!.replace("  exportTo: ['.']\n", '')).toBe(previousText!.replace("  exportTo: ['.']\n", ''));
      expect(nextText).not.toBe(previousText);
      return;
    }
  });
});

test('half of the busy namespaces change at a time, and each pauses regularly', () => {
  const activeByRotation = Array.from({ length: 20 }, (_, rotation) => activeNamespaces(rotation * rotationMs));
  for (const active of activeByRotation) expect(active).toHaveLength(busyNamespaces.length / 2);
  const pausedNamespaces = busyNamespaces.filter((namespace) =>
    activeByRotation.some((active) => !active.includes(namespace)),
  );
  expect(pausedNamespaces).toEqual(busyNamespaces);
});

test('a new revision changes the content of a file', () => {
  const change = { namespace: 'ns-1', service: 3, isPrivate: false, sidecarRevision: 0 };
  for (const kind of ['endpoints', 'route', 'rule', 'gateway route'] as const) {
    expect(filesOf({ ...change, kind, revision: 1 })).not.toEqual(filesOf({ ...change, kind, revision: 2 }));
  }
});

test('each service starts with three files; every fourth has a gateway route, and most namespaces have a Sidecar object', () => {
  const files = Object.keys(initialFiles(4));
  expect(files.filter((name) => /-(entry|route|rule)\.yaml$/.test(name) && !/gateway/.test(name))).toHaveLength(
    namespaces.length * 4 * 3,
  );
  expect(files.filter((name) => name.endsWith('-gateway-route.yaml'))).toHaveLength(namespaces.length);
  expect(files.filter((name) => name.endsWith('-sidecar.yaml')).length).toBeGreaterThan(namespaces.length * 0.9);
});
