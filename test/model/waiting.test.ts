/**
 * No state waits without a limit (`after`), or without a reason for users
 * (`meta: { waitsFor }`, shown with the state's description).
 */
import { describe, expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { namedMachines } from '../../src/debugger/statechart/named-machines.ts';
import { leafStates } from './chart.ts';

const hasLimit = (node: AnyStateNode): boolean => Object.keys(node.config.after ?? {}).length > 0;
const leavesAtOnce = (node: AnyStateNode): boolean => (node.always ?? []).some(({ guard }) => guard === undefined);
const reasonOf = (node: AnyStateNode): unknown => (node.meta as { waitsFor?: unknown } | undefined)?.waitsFor;

function ancestorsOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...(node.parent === undefined ? [] : ancestorsOf(node.parent))];
}

/** States that may never end and do not describe what they wait for. */
function waitingWithoutReason(root: AnyStateNode): string[] {
  return leafStates(root)
    .filter((node) => !leavesAtOnce(node))
    .filter((node) => !ancestorsOf(node).some((one) => hasLimit(one) || typeof reasonOf(one) === 'string'))
    .map(({ path }) => path.join('.'));
}

describe('states without a deadline', () => {
  test.each(namedMachines.map((machine) => [machine.name, machine] as const))(
    'describe what they wait for in %s',
    async (_, machine) => {
      const { root } = await machine.load();
      expect(waitingWithoutReason(root)).toEqual([]);
    },
  );
});
