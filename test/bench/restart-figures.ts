/** Figures of a run with many restarts. Pure. */
import type { AgentUsage } from './agent-usage.ts';
import { medianOf, quantileOf } from './statistics.ts';

export interface RestartRun {
  /** Number of requested restarts. */
  readonly requested: number;
  readonly requests: number;
  readonly failed: number;
  /** Time from spawn to live of each epoch after the first, according to the agent's trace. */
  readonly timesToLiveMs: readonly number[];
  /** Time from writing the certificate until a client received it, for each completed restart. */
  readonly servedAfterMs: readonly number[];
  /** How often epoch 0 became live: more than once if a restart was not hot. */
  readonly coldStarts: number;
  /** Epochs that did not become live or that exited unexpectedly. */
  readonly failedEpochs: number;
  /** Usage before the first restart, then after each one, when the superseded Envoy has exited. */
  readonly usage: readonly AgentUsage[];
}

/**
 * Allowed growth of resident memory between the first and the last tenth of a run: a heap with occasional collections varies by this much without a
 * leak.
 */
const rssAllowance = { share: 0.1, bytes: 16 * 1024 ** 2 };

export const growthRule =
  'medians over the samples after the first and the last tenth of the restarts: file descriptors and shared memory ' +
  `files equal or fewer, resident memory at most ${rssAllowance.share * 100} % or ${megabytes(rssAllowance.bytes)} more`;

/** Returns one sentence per resource of which the agent uses more at the end; see {@link growthRule}. */
export function growthProblems(usage: readonly AgentUsage[]): string[] {
  const laterUsage = usage.slice(1);
  const tenth = Math.max(1, Math.floor(laterUsage.length / 10));
  const median = (samples: readonly AgentUsage[], key: keyof AgentUsage): number =>
    medianOf(samples.map((sample) => sample[key]));
  const growthGoal = (
    resource: string,
    key: keyof AgentUsage,
    allowed: (first: number) => number,
    unit: (value: number) => string = String,
  ): string[] => {
    const first = median(laterUsage.slice(0, tenth), key);
    const last = median(laterUsage.slice(-tenth), key);
    return last <= allowed(first) ? [] : [`${resource} grew from ${unit(first)} to ${unit(last)}`];
  };
  const allowedRss = (first: number): number => first + Math.max(first * rssAllowance.share, rssAllowance.bytes);
  return [
    ...growthGoal("the agent's resident memory", 'rssBytes', allowedRss, megabytes),
    ...growthGoal("the number of the agent's file descriptors", 'fds', (first) => first),
    ...growthGoal("the number of its Envoys' shared memory files", 'sharedMemoryFiles', (first) => first),
  ];
}

export function problemsOf(run: RestartRun): string[] {
  const { requested, requests, failed, servedAfterMs, coldStarts, failedEpochs, usage } = run;
  return [
    ...(requests > 0 ? [] : ['no request was made']),
    ...(failed === 0 ? [] : [`${failed} of ${requests} requests failed`]),
    ...(servedAfterMs.length === requested
      ? []
      : [`only ${servedAfterMs.length} of ${requested} restarts came to their end`]),
    ...(coldStarts <= 1 ? [] : [`${coldStarts - 1} restarts were not hot`]),
    ...(failedEpochs === 0 ? [] : [`${failedEpochs} epochs failed`]),
    ...growthProblems(usage),
  ];
}

export function formatRestartRun(run: RestartRun): string {
  const { timesToLiveMs, servedAfterMs, usage } = run;
  return [
    `${servedAfterMs.length} restarts`,
    `${run.requests} requests`,
    `${run.failed} failed`,
    `live in ${spread(timesToLiveMs)}`,
    `served after ${spread(servedAfterMs)}`,
    `rss ${threePoints(usage, ({ rssBytes }) => megabytes(rssBytes))}`,
    `fds ${threePoints(usage, ({ fds }) => String(fds))}`,
    `shm files ${threePoints(usage, ({ sharedMemoryFiles }) => String(sharedMemoryFiles))}`,
  ].join(', ');
}

export function formatUsage({ rssBytes, fds, sharedMemoryFiles }: AgentUsage): string {
  return `rss ${megabytes(rssBytes)}, ${fds} fds, ${sharedMemoryFiles} shm`;
}

function spread(valuesMs: readonly number[]): string {
  const figures = [medianOf(valuesMs), quantileOf(valuesMs, 0.99), quantileOf(valuesMs, 1)];
  return `${figures.map(Math.round).join('/')} ms (median/p99/max)`;
}

function threePoints(usage: readonly AgentUsage[], format: (sample: AgentUsage) => string): string {
  const points = [usage[0], usage[Math.floor(usage.length / 2)], usage.at(-1)];
  return points.map((sample) => (sample === undefined ? '?' : format(sample))).join(' → ');
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
