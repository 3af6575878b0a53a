import type { LoadReport, TimelineSlice } from '../load/report.ts';

/** A slice with fewer responses is too small for a share. */
const minResponses = 10;

const responsesIn = (slices: readonly TimelineSlice[], version?: string): number =>
  slices.reduce((sum, slice) => {
    const counts = version === undefined ? Object.values(slice.versions) : [slice.versions[version] ?? 0];
    return sum + counts.reduce((a, b) => a + b, 0);
  }, 0);

export interface VersionShare {
  /** 0 to 1; NaN without a response. */
  readonly share: number;
  readonly responses: number;
}

/** Share of a version in the successful responses between two times (milliseconds since the start of the run). */
export function shareBetween(report: LoadReport, version: string, fromMs: number, toMs: number): VersionShare {
  const slices = report.timeline.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
  const responses = responsesIn(slices);
  return { share: responsesIn(slices, version) / responses, responses };
}

export interface SplitChange {
  readonly version: string;
  /** Time of the file's write, in milliseconds since the start of the run. */
  readonly changedAtMs: number;
  /** Weights of the version before and after the change: 0 to 1, far apart. */
  readonly previousShare: number;
  readonly after: number;
}

/**
 * Time from a change until the new split applies: the end of the last slice whose responses are closer to the old
 * split.
 *
 * @returns milliseconds, or `undefined` if the new split did not apply before the end of the run
 */
export function appliesAfterMs(report: LoadReport, change: SplitChange): number | undefined {
  const middle = (change.previousShare + change.after) / 2;
  const resemblesNew = (slice: TimelineSlice): boolean =>
    responsesIn([slice], change.version) / responsesIn([slice]) > middle === change.after > middle;
  const laterSlices = report.timeline.filter(
    (slice) => slice.atMs >= change.changedAtMs && responsesIn([slice]) >= minResponses,
  );
  const firstNew = laterSlices.findLastIndex((slice) => !resemblesNew(slice)) + 1;
  const slice = laterSlices[firstNew];
  return slice === undefined ? undefined : slice.atMs - change.changedAtMs;
}
