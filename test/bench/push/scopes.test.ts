import { expect, test } from 'vitest';
import { missedGoals, uncheckedGoals } from './push-figures.ts';
import { scopeFigures, scopeMeshes, scopesGoalSize } from './scopes.ts';

/** Figures of each mesh: CPU time of a VirtualService and a DestinationRule change, and the heap before and after. */
function figuresOf(
  costs: Record<string, { route: number; rule: number; heap: readonly [number, number] }>,
  size = scopesGoalSize,
) {
  const samples = Object.entries(costs).map(([mesh, { route, rule, heap }]) => {
    const batches = { route: [{ cpuMs: route, ackMs: 1 }], rule: [{ cpuMs: rule, ackMs: 1 }] };
    return [mesh, [{ batches, initialCpuMs: 1, heapMib: heap }]] as const;
  });
  return scopeFigures(new Map(samples), size);
}

const [isPublic, isPrivate, hasSidecars] = Object.keys(scopeMeshes) as [string, string, string];
const cheap = { route: 10, rule: 20, heap: [100, 100] } as const;

test('costs of a mesh are compared with those of the public mesh, and its heap size with the size before the changes', () => {
  const figures = figuresOf({
    [isPublic]: cheap,
    [isPrivate]: { ...cheap, route: 31, heap: [100, 120] },
    [hasSidecars]: { ...cheap, rule: 60 },
  });
  const of = '5000 services × 300 namespaces';
  expect(uncheckedGoals(figures)).toEqual([]);
  expect(figures.flatMap(missedGoals)).toEqual([
    `${of}, ${isPrivate}: a VirtualService, CPU: grows 3.1 ×, the goal is at most 3`,
    `${of}, ${isPrivate}: heap after 200 changes: grows 1.2 ×, the goal is at most 1.1`,
  ]);
});

test('a run with few changes prints the heap size without checking it, and a small mesh is checked by ratios', () => {
  const smallSize = { services: 300, sidecars: 20, changes: 16 };
  const costs = { [isPublic]: { ...cheap, heap: [100, 200] as const }, [isPrivate]: { ...cheap, route: 31 } };
  expect(figuresOf(costs, smallSize).flatMap(missedGoals)).toEqual([expect.stringContaining('grows 3.1 ×')]);
});

test('the base mesh is the mesh without restrictions', () => {
  expect(scopeMeshes[isPublic]).toMatchObject({ sidecars: 'none', privateServices: 'none', namespaces: 300 });
});
