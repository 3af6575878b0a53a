import type { LoadReport, TimelineSlice } from '../load/report.ts';

/** A slice with fewer responses says nothing about shares. */
const fewestResponses = 10;

const responsesIn = (slices: readonly TimelineSlice[], version?: string): number =>
  slices.reduce((sum, slice) => {
    const counts = version === undefined ? Object.values(slice.versions) : [slice.versions[version] ?? 0];
    return sum + counts.reduce((a, b) => a + b, 0);
  }, 0);

export interface Share {
  /** 0 to 1; NaN when there was no response. */
  readonly share: number;
  readonly responses: number;
}

/** Which share of the good responses between two moments (milliseconds since the run's start) came from a version. */
export function shareBetween(report: LoadReport, version: string, fromMs: number, toMs: number): Share {
  const slices = report.timeline.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
  const responses = responsesIn(slices);
  return { share: responsesIn(slices, version) / responses, responses };
}

export interface SplitChange {
  readonly version: string;
  /** When the file was written, in milliseconds since the run's start. */
  readonly changedAtMs: number;
  /** The version's share by the file, before and after the change: 0 to 1, far apart. */
  readonly before: number;
  readonly after: number;
}

/**
 * How long after a change the new split was in force: until the end of the last slice of time whose responses look more
 * like the old split.
 *
 * @returns milliseconds, or undefined when the run ended before the new split was in force.
 */
export function inForceAfterMs(report: LoadReport, change: SplitChange): number | undefined {
  const middle = (change.before + change.after) / 2;
  const looksNew = (slice: TimelineSlice): boolean =>
    responsesIn([slice], change.version) / responsesIn([slice]) > middle === change.after > middle;
  const later = report.timeline.filter(
    (slice) => slice.atMs >= change.changedAtMs && responsesIn([slice]) >= fewestResponses,
  );
  const firstNew = later.findLastIndex((slice) => !looksNew(slice)) + 1;
  const slice = later[firstNew];
  return slice === undefined ? undefined : slice.atMs - change.changedAtMs;
}
