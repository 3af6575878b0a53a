import { afterEach, expect, test, vi } from 'vitest';
import { formatProgress } from './explore-command.ts';
import { explore, findShortest, type Progress } from './explorer.ts';
import type { World } from './world.ts';

afterEach(() => vi.restoreAllMocks());

class Counter implements World {
  #position = 0;
  readonly #to: number;
  readonly violations = [];
  readonly spawnCount = 0;
  readonly isEnding = false;

  constructor(to: number) {
    this.#to = to;
  }

  choices() {
    return this.#position >= this.#to ? [] : ['1', '2'].map((name) => ({ name, free: false }));
  }
  apply(choice: string) {
    this.#position = Math.min(this.#to, this.#position + Number(choice));
  }
  key() {
    return String(this.#position);
  }
  save() {
    const at = this.#position;
    return () => {
      this.#position = at;
    };
  }
}

test.each([
  ['depth-first', explore],
  ['breadth-first', findShortest],
])('a long %s exploration reports its progress every five seconds', (_, search) => {
  const reports: Progress[] = [];
  // Every read of the clock advances it by 10 ms.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
  const { states } = search(
    () => new Counter(20_000),
    {},
    (progress) => reports.push(progress),
  );
  expect(states).toBe(20_001);
  expect(reports.length).toBeGreaterThan(2);
  for (const [i, { ms }] of reports.entries()) expect(ms - (reports[i - 1]?.ms ?? 0)).toBeGreaterThanOrEqual(5_000);
  expect(reports.at(-1)!.states).toBeGreaterThan(reports[0]!.states);
  expect(reports[0]!.edges).toBeGreaterThan(0);
  expect(reports[0]!.open).toBeGreaterThan(0);
});

test('formatProgress returns one line of text', () => {
  expect(formatProgress({ states: 12_345, edges: 45_678, open: 9, ms: 35_400 })).toBe(
    'explore: 12,345 states, 45,678 edges, 9 choices left, 35 s',
  );
});
