/**
 * Random runs in the explorer's world, longer than a complete exploration allows. A run is a list of numbers, each of which selects one of the
 * possible choices: any list is a run, so fast-check can shrink it.
 */
import fc from 'fast-check';
import { goalIsReached } from '../../src/debugger/explore/explorer.ts';
import type { InvariantViolation } from '../../src/debugger/explore/world.ts';
import type { PushWorldOptions } from '../../src/simulation/discovery/discovery-bounds.ts';
import { type PushMachines, pushMachines, scriptedCharts } from '../../src/simulation/discovery/discovery-charts.ts';
import { PushWorld } from '../../src/simulation/discovery/discovery-exploration.ts';
import { type MeshEvent, meshTypes } from '../../src/simulation/discovery/discovery-mesh.ts';

export interface RandomPushes {
  readonly clients: readonly ('sotw' | 'delta')[];
  readonly throttle: number;
  readonly window: number;
  /** Start of a run: all clients connected and served, none, or none and a registry without its first list. */
  readonly start: 'settled' | 'empty' | 'unlisted';
  readonly requestsLate: boolean;
  readonly picks: readonly number[];
}

const registryChanges: readonly MeshEvent[] = ['endpoint', 'cluster'];
const events: readonly MeshEvent[] = ['endpoint', 'service', 'route', 'cluster', 'forced'];
/** More than the longest path to idle with this number of clients. */
const maxChoicesUntilIdle = 2_000;

/** @param maxChoices choices in a run */
const randomPushes = (maxChoices = 150): fc.Arbitrary<RandomPushes> =>
  fc.record({
    clients: fc.array(fc.constantFrom('sotw' as const, 'delta' as const), { minLength: 1, maxLength: 4 }),
    throttle: fc.integer({ min: 1, max: 3 }),
    window: fc.constantFrom(0, 0, 1, 2),
    start: fc.constantFrom('settled' as const, 'empty' as const, 'unlisted' as const),
    requestsLate: fc.boolean(),
    picks: fc.oneof(
      { weight: 4, arbitrary: fc.array(fc.nat(1_000), { maxLength: Math.min(40, maxChoices), size: 'max' }) },
      { weight: 1, arbitrary: fc.array(fc.nat(1_000), { maxLength: maxChoices, size: 'max' }) },
    ),
  });

export interface PushSearchOptions {
  readonly seed: number;
  readonly runs: number;
  /** Maximum number of choices in a run, before it becomes idle. */
  readonly maxChoices?: number;
  /** fast-check's path to the failure of an earlier search. */
  readonly path?: string;
  readonly machines?: Partial<PushMachines>;
  readonly world?: Partial<PushWorldOptions>;
}

export interface PushFinding {
  readonly seed: number;
  readonly path: string;
  readonly run: RandomPushes;
  /** The selected choices. */
  readonly choices: readonly string[];
  readonly violations: readonly InvariantViolation[];
}

export interface PushSearchResult {
  readonly figures: { readonly runs: number; readonly choices: number; readonly responses: number };
  readonly finding?: PushFinding;
}

/** Executes runs until one violates an invariant, which is then shrunk. The same options give the same result. */
export function searchPushes({ seed, runs, maxChoices, path, machines, world }: PushSearchOptions): PushSearchResult {
  const charts = scriptedCharts({ ...pushMachines, ...machines });
  const figures = { runs: 0, choices: 0, responses: 0 };
  const followRun = (run: RandomPushes): { choices: string[]; violations: readonly InvariantViolation[] } => {
    const { picks, start, ...options } = run;
    const beginning = { startsConnected: start === 'settled', listsLate: start === 'unlisted' };
    const bounds = { changes: picks.length, faults: picks.length };
    const at = new PushWorld(charts, bounds, {
      types: meshTypes,
      events,
      registryChanges: registryChanges,
      ...beginning,
      ...options,
      ...world,
    });
    const choices: string[] = [];
    const takeChoice = (pick: number): boolean => {
      const possible = at.choices();
      if (possible.length === 0) return false;
      const choice = possible[pick % possible.length]!.name;
      choices.push(choice);
      at.apply(choice);
      return true;
    };
    for (const pick of picks) takeChoice(pick);
    at.exhaust();
    let remainingChoices = maxChoicesUntilIdle;
    while (remainingChoices > 0 && takeChoice(0)) remainingChoices--;
    const restless =
      remainingChoices === 0
        ? [{ invariant: 'no livelock', detail: `no rest after ${maxChoicesUntilIdle} choices` }]
        : [];
    const unreached =
      at.violations.length > 0 || at.isGoalReached
        ? []
        : [{ invariant: goalIsReached, detail: 'at the end of the run' }];
    figures.runs++;
    figures.choices += choices.length;
    figures.responses += at.spawnCount;
    return { choices, violations: [...at.violations, ...restless, ...unreached] };
  };
  const details = fc.check(
    fc.property(randomPushes(maxChoices), (run) => followRun(run).violations.length === 0),
    { seed, numRuns: runs, ...(path !== undefined && { path, endOnFailure: true }) },
  );
  const run = details.counterexample?.[0];
  if (!details.failed || run === undefined) return { figures };
  return { figures, finding: { seed, path: details.counterexamplePath ?? '', run, ...followRun(run) } };
}
