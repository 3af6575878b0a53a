/** What a run of many restarts amounts to. Pure. */
import type { AgentUsage } from './agent-usage.ts';
import { medianOf, quantileOf } from './statistics.ts';

export interface RestartRun {
  /** How many were asked for. */
  readonly wanted: number;
  readonly requests: number;
  readonly failed: number;
  /** One for each epoch after the first, as the agent's trace has it: from spawn to live. */
  readonly timesToLiveMs: readonly number[];
  /** One for each restart that was seen to its end: from the write of the certificate until a client was served it. */
  readonly servedAfterMs: readonly number[];
  /** How often epoch 0 became live: once, unless a restart was not hot. */
  readonly coldStarts: number;
  /** Tries that did not become live, and epochs that ended before their time. */
  readonly failedEpochs: number;
  /** Before the first restart, then after each one, when the superseded Envoy had left. */
  readonly usage: readonly AgentUsage[];
}

/**
 * How much the resident memory may grow between the first and the last tenth: a heap that is collected now and then
 * breathes by this much without a leak.
 */
const rssAllowance = { share: 0.1, bytes: 16 * 1024 ** 2 };

/** The rule of {@link growthProblems} in words. */
export const growthRule =
  'medians over the samples after the first and the last tenth of the restarts: file descriptors and shared memory ' +
  `files equal or fewer, resident memory at most ${rssAllowance.share * 100} % or ${megabytes(rssAllowance.bytes)} more`;

/** What the agent has more of at the end than in the beginning, one sentence each; see {@link growthRule}. */
export function growthProblems(usage: readonly AgentUsage[]): string[] {
  const afterRestarts = usage.slice(1);
  const tenth = Math.max(1, Math.floor(afterRestarts.length / 10));
  const median = (samples: readonly AgentUsage[], key: keyof AgentUsage): number =>
    medianOf(samples.map((sample) => sample[key]));
  const grown = (
    what: string,
    key: keyof AgentUsage,
    allowed: (first: number) => number,
    unit: (value: number) => string = String,
  ): string[] => {
    const first = median(afterRestarts.slice(0, tenth), key);
    const last = median(afterRestarts.slice(-tenth), key);
    return last <= allowed(first) ? [] : [`${what} grew from ${unit(first)} to ${unit(last)}`];
  };
  const allowedRss = (first: number): number => first + Math.max(first * rssAllowance.share, rssAllowance.bytes);
  return [
    ...grown("the agent's resident memory", 'rssBytes', allowedRss, megabytes),
    ...grown("the number of the agent's file descriptors", 'fds', (first) => first),
    ...grown("the number of its Envoys' shared memory files", 'sharedMemoryFiles', (first) => first),
  ];
}

/** Everything that is not as it should be, one sentence each; empty when all is well. */
export function problemsOf(run: RestartRun): string[] {
  const { wanted, requests, failed, servedAfterMs, coldStarts, failedEpochs, usage } = run;
  return [
    ...(requests > 0 ? [] : ['no request was made']),
    ...(failed === 0 ? [] : [`${failed} of ${requests} requests failed`]),
    ...(servedAfterMs.length === wanted
      ? []
      : [`only ${servedAfterMs.length} of ${wanted} restarts came to their end`]),
    ...(coldStarts <= 1 ? [] : [`${coldStarts - 1} restarts were not hot`]),
    ...(failedEpochs === 0 ? [] : [`${failedEpochs} epochs failed`]),
    ...growthProblems(usage),
  ];
}

/** All figures in one line. */
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

/** The agent's use in a few words. */
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
