/** Searches for a schedule that violates an invariant, and shrinks it. */
import fc from 'fast-check';
import type { InvariantViolation } from '../../src/debugger/explore/world.ts';
import type { TraceSink } from '../../src/runtime/trace/trace.ts';
import type { ScriptedAgent } from '../../src/simulation/agent/exploration-effects.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import { randomAgent } from './random-effects.ts';
import { run } from './random-run.ts';
import { formatSchedule, type Schedule, schedules } from './random-schedule.ts';

export interface SearchOptions {
  readonly seed: number;
  /** Maximum number of schedules. */
  readonly runs: number;
  /** fast-check's path to the failure of an earlier search. */
  readonly path?: string;
  readonly agent?: ScriptedAgent;
  readonly invariants?: readonly Invariant[];
  /** One in this number of schedules is checked against the sequence diagrams, which takes twice as long. Default 10; 0: none. */
  readonly checkEvery?: number;
}

export interface SearchFigures {
  readonly schedules: number;
  readonly checkedCount: number;
  /** Number of started Envoys. */
  readonly spawnCount: number;
  readonly virtualMs: number;
}

export interface Finding {
  readonly seed: number;
  readonly path: string;
  readonly schedule: Schedule;
  readonly violations: readonly InvariantViolation[];
}

export interface SearchResult {
  readonly figures: SearchFigures;
  readonly finding?: Finding;
}

const defaultCheckEvery = 10;
/** One in this number of schedules has a log and a trace, with their faults, which takes three times as long. */
const sinksEvery = 50;

/** Runs schedules until one violates an invariant; that schedule is then shrunk. The same options give the same result. */
export function searchSchedules(options: SearchOptions): SearchResult {
  const { seed, path, invariants, agent = randomAgent(), checkEvery = defaultCheckEvery } = options;
  const figures = { schedules: 0, checkedCount: 0, spawnCount: 0, virtualMs: 0 };
  let shrinking = false;
  const violationsOf = (schedule: Schedule): readonly InvariantViolation[] => {
    // Depends only on the schedule, so that it is always checked in the same way.
    const isChecked = checkEvery > 0 && schedule.durationSeed % checkEvery === 0;
    const hasSinks = checkEvery > 0 && schedule.durationSeed % sinksEvery === 0;
    const { violations, spawnCount, virtualMs } = run(schedule, {
      agent,
      checksDiagrams: isChecked,
      ...(invariants && { invariants }),
      ...(hasSinks && { sinks: {} }),
    });
    shrinking ||= violations.length > 0;
    if (!shrinking) {
      figures.schedules++;
      figures.checkedCount += isChecked ? 1 : 0;
      figures.spawnCount += spawnCount;
      figures.virtualMs += virtualMs;
    }
    return violations;
  };
  const details = fc.check(
    fc.property(schedules, (schedule) => violationsOf(schedule).length === 0),
    { seed, numRuns: options.runs, ...(path !== undefined && { path, endOnFailure: true }) },
  );
  const schedule = details.counterexample?.[0];
  if (!details.failed || schedule === undefined) return { figures };
  const finding = { seed, path: details.counterexamplePath ?? '', schedule, violations: violationsOf(schedule) };
  return { figures, finding };
}

/** Formats a report for users: the violation, its schedule, and the command that reproduces it. */
export function formatFinding({ seed, path, schedule, violations }: Finding, trace: string): string {
  return [
    ...violations.map(({ invariant, detail }) => `violated: ${invariant}\n  ${detail}`),
    formatSchedule(schedule),
    `trace: ${trace}`,
    `again: npm run test:soak -- --seed ${seed} --path ${path}`,
  ].join('\n');
}

/** Writes a schedule's run as a trace: for `chartpilot check`, `chartpilot trace` and the visualizer. */
export function writeRandomTrace(schedule: Schedule, sink: TraceSink, agent: ScriptedAgent = randomAgent()): void {
  run(schedule, { agent, sink });
}
