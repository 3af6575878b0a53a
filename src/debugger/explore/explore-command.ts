import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { mustBe } from '../../model/fields/violation.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { count, text } from '../../runtime/findings/words.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { TraceSink } from '../../runtime/trace/trace.ts';
import { traceFile } from '../../runtime/trace/trace-file.ts';
import type { CommandOutput } from '../command-output.ts';
import { type Exploration, explore, findShortest, type Limits, type Progress } from './explorer.ts';
import { exploreWithHelper, type Helper } from './two-explorers.ts';
import type { World } from './world.ts';

const maxDetail = 1_000;

export interface ExplorationSubject {
  readonly bounds: Readonly<Record<string, number>>;
  beginWorld(): World;
  /** Limits if the user sets none; absent if the bounds make the number of states finite. */
  readonly defaultLimits?: Limits;
  /** Absent for a small subject, which is explored breadth first. */
  readonly helper?: Helper;
  writeTrace(path: readonly string[], sink: TraceSink): void;
}

export interface ExploreCommandOptions {
  readonly limit?: number;
  readonly minutes?: number;
  readonly trace?: string;
  readonly format: 'text' | 'json';
}

/** @returns the exit code: 0 without a violation, 1 with one */
export function exploreWithin(
  subject: ExplorationSubject,
  options: ExploreCommandOptions,
  output: CommandOutput,
): number {
  const { limit, minutes, trace: path } = options;
  // The trace is written only at the end of the search, therefore its folder is checked first.
  if (path !== undefined && statSync(dirname(resolve(path)), { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw optionError('--trace', mustBe('a file in a directory that exists', path));
  }
  const optionLimits = {
    ...(limit !== undefined && { states: limit }),
    ...(minutes !== undefined && { ms: minutes * 60_000 }),
  };
  const limits = limit === undefined && minutes === undefined ? (subject.defaultLimits ?? {}) : optionLimits;
  const beginWorld = (): World => subject.beginWorld();
  const reportProgress = (progress: Progress): void => output.error(`${formatProgress(progress)}\n`);
  const { helper } = subject;
  const result =
    helper === undefined
      ? findShortest(beginWorld, limits, reportProgress)
      : availableParallelism() > 1
        ? exploreWithHelper(beginWorld, helper, limits, reportProgress)
        : explore(beginWorld, limits, reportProgress);
  const trace = result.found === undefined ? undefined : options.trace;
  if (trace !== undefined && result.found !== undefined) subject.writeTrace(result.found.path, openSink(trace));
  const { bounds } = subject;
  const report =
    options.format === 'json'
      ? JSON.stringify({ bounds, ...result, ...(trace !== undefined && { trace }) }, undefined, 2)
      : formatExploration(bounds, result, trace);
  output.out(`${report}\n`);
  return result.outcome === 'violation' ? 1 : 0;
}

export function formatProgress({ states, edges, open, ms }: Progress): string {
  const [stateCount, edgeCount, openCount] = [states, edges, open].map((n) => n.toLocaleString('en'));
  return `explore: ${stateCount} states, ${edgeCount} edges, ${openCount} choices left, ${Math.round(ms / 1_000)} s`;
}

function formatExploration(bounds: ExplorationSubject['bounds'], result: Exploration, trace?: string): string {
  const { outcome, states, edges, depth, ms, found } = result;
  const boundTexts = Object.entries(bounds).map(([name, number]) => `${number} ${name}`);
  const headline = {
    complete: 'complete, no violation and no livelock',
    limit: 'INCOMPLETE: limit reached, no violation so far (raise --limit or --minutes)',
    violation: 'violation',
  }[outcome];
  const figures = `${count(states, 'state')}, ${count(edges, 'edge')}, depth ${depth}, ${(ms / 1000).toFixed(1)} s`;
  return [
    ...(found?.violations.map(({ invariant, detail }) => `violated: ${invariant}\n  ${text(detail, maxDetail)}`) ?? []),
    ...(found === undefined
      ? []
      : [`after ${count(found.path.length, 'choice')}${found.isShortest ? ' (the shortest run)' : ''}:`]),
    ...(found?.path.map((choice, i) => `  ${String(i + 1).padStart(3)}  ${choice}`) ?? []),
    ...(trace === undefined ? [] : [`trace: ${trace}`]),
    `explore: ${headline} (${boundTexts.join(', ')}): ${figures}`,
  ].join('\n');
}

function openSink(path: string): TraceSink {
  try {
    return traceFile(path);
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--trace: cannot write ${path}: ${messageOf(error)}`, {
      fields: { path: '--trace', got: path },
      cause: error,
    });
  }
}
