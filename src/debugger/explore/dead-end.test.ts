import { describe, expect, test } from 'vitest';
import { explore, findShortest, goalIsReached } from './explorer.ts';
import type { World, WorldChoice } from './world.ts';

/** Choices of each state by name, with the next state. */
type Edges = Readonly<Record<string, Readonly<Record<string, { to: string } & Partial<Omit<WorldChoice, 'name'>>>>>>;

function worldOf(edges: Edges, goalStates: readonly string[] | undefined): World {
  let at = 'start';
  const world: World = {
    choices: () =>
      Object.entries(edges[at] ?? {}).map(([name, { free = true, fair = free }]) => ({ name, free, fair })),
    apply: (choice) => {
      at = edges[at]![choice]!.to;
    },
    key: () => at,
    violations: [],
    spawnCount: 0,
    isEnding: false,
    save: () => {
      const savedState = at;
      return () => {
        at = savedState;
      };
    },
  };
  if (goalStates === undefined) return world;
  return {
    ...world,
    get isGoalReached() {
      return goalStates.includes(at);
    },
  };
}

const waits: Edges = {
  start: { ask: { to: 'waiting' }, lose: { to: 'lost', free: false } },
  waiting: { answer: { to: 'answered' } },
  lost: { find: { to: 'waiting', free: false } },
  answered: {},
};

describe('the search for states from which the goal is unreachable', () => {
  test('finds no state if fair choices lead from every state to the goal', () => {
    const { lost: _, ...edges } = waits;
    const careful: Edges = { ...edges, start: { ask: { to: 'waiting' } } };
    expect(explore(() => worldOf(careful, ['answered'])).outcome).toBe('complete');
  });

  test('finds a state from which only a fault or a new order leads to the goal, with the shortest run to this state', () => {
    const { outcome, found } = explore(() => worldOf(waits, ['answered']));
    expect(outcome).toBe('violation');
    expect(found).toMatchObject({ path: ['lose'], isShortest: true });
    expect(found?.violations.map(({ invariant }) => invariant)).toEqual([goalIsReached]);
    expect(findShortest(() => worldOf(waits, ['answered'])).found?.path).toEqual(['lose']);
  });

  test('does not rely on a choice that might never happen, even if the choice is free', () => {
    const unfairEdges: Edges = {
      start: { ask: { to: 'waiting' } },
      waiting: { answer: { to: 'answered', fair: false }, wait: { to: 'waiting' } },
    };
    expect(explore(() => worldOf(unfairEdges, ['answered'])).found?.path).toEqual([]);
  });

  test('accepts runs that lose the goal and reach it again', () => {
    const loopEdges: Edges = {
      start: { go: { to: 'there' } },
      there: { fall: { to: 'out', free: false } },
      out: { back: { to: 'start' } },
    };
    expect(explore(() => worldOf(loopEdges, ['there'])).outcome).toBe('complete');
  });

  test('is skipped for a world without a goal', () => {
    expect(explore(() => worldOf(waits, undefined)).outcome).toBe('complete');
  });
});
