/** A transition from a parallel state into one of its regions re-enters all regions, which then lose their pending waits. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { isMachine } from '../../src/runtime/trace/statechart.ts';

async function machines(): Promise<AnyStateMachine[]> {
  const files = globSync('machines/**/*.machine.ts', { cwd: packageRoot() });
  const modules = await Promise.all(files.map((file) => import(pathToFileURL(join(packageRoot(), file)).href)));
  return modules.flatMap((module) => Object.values(module as object).filter(isMachine));
}

function* nodesOf(node: AnyStateNode): Generator<AnyStateNode> {
  yield node;
  for (const child of Object.values(node.states)) yield* nodesOf(child as AnyStateNode);
}

test('a transition of a parallel state never leads into one of its regions', async () => {
  const nodes = (await machines()).flatMap((machine) => [...nodesOf(machine.root)]);
  const parallel = nodes.filter(({ type }) => type === 'parallel');
  expect(parallel.length).toBeGreaterThan(3);
  const exitingTransitions = parallel.flatMap((node) =>
    [...node.transitions.values()].flat().flatMap(({ eventType, target }) => {
      const innerTargets = (target ?? []).filter((one: AnyStateNode) => one.id.startsWith(`${node.id}.`));
      return innerTargets.length === 0
        ? []
        : [`${node.id}: ${eventType} → ${innerTargets.map(({ id }: AnyStateNode) => id).join()}`];
    }),
  );
  expect(exitingTransitions).toEqual([]);
});
