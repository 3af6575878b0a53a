import { describe, expect, test } from 'vitest';
import { explore, findShortest, whatIsWantedIsReached } from './explorer.ts';
import type { Choice, World } from './world.ts';

/** `start` waits for a letter, which comes or never comes; who has asked twice gives up. */
type Edges = Readonly<Record<string, Readonly<Record<string, { to: string } & Partial<Omit<Choice, 'name'>>>>>>;

function worldOf(edges: Edges, wanted: readonly string[] | undefined): World {
  let at = 'start';
  const world: World = {
    choices: () =>
      Object.entries(edges[at] ?? {}).map(([name, { free = true, fair = free }]) => ({ name, free, fair })),
    apply: (choice) => {
      at = edges[at]![choice]!.to;
    },
    key: () => at,
    violations: [],
    spawned: 0,
    ending: false,
    save: () => {
      const then = at;
      return () => {
        at = then;
      };
    },
  };
  if (wanted === undefined) return world;
  return {
    ...world,
    get reached() {
      return wanted.includes(at);
    },
  };
}

const waits: Edges = {
  start: { ask: { to: 'waiting' }, lose: { to: 'lost', free: false } },
  waiting: { answer: { to: 'answered' } },
  lost: { find: { to: 'waiting', free: false } },
  answered: {},
};

describe('what is wanted', () => {
  test('is reached where fair choices lead to it from every state', () => {
    const { lost: _, ...edges } = waits;
    const careful: Edges = { ...edges, start: { ask: { to: 'waiting' } } };
    expect(explore(() => worldOf(careful, ['answered'])).outcome).toBe('complete');
  });

  test('is out of reach where only a fault or a new order would lead to it; the shortest run says where', () => {
    const { outcome, found } = explore(() => worldOf(waits, ['answered']));
    expect(outcome).toBe('violation');
    expect(found).toMatchObject({ path: ['lose'], shortest: true });
    expect(found?.violations.map(({ invariant }) => invariant)).toEqual([whatIsWantedIsReached]);
    expect(findShortest(() => worldOf(waits, ['answered'])).found?.path).toEqual(['lose']);
  });

  test('is not reached by a choice that may as well never come, though it spends nothing', () => {
    const never: Edges = {
      start: { ask: { to: 'waiting' } },
      waiting: { answer: { to: 'answered', fair: false }, wait: { to: 'waiting' } },
    };
    expect(explore(() => worldOf(never, ['answered'])).found?.path).toEqual([]);
  });

  test('may be undone and reached again, by whatever way', () => {
    const again: Edges = {
      start: { go: { to: 'there' } },
      there: { fall: { to: 'out', free: false } },
      out: { back: { to: 'start' } },
    };
    expect(explore(() => worldOf(again, ['there'])).outcome).toBe('complete');
  });

  test('is not asked of a world that does not say what it is', () => {
    expect(explore(() => worldOf(waits, undefined)).outcome).toBe('complete');
  });
});
