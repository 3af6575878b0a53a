/** What comes of asking the control plane what it patches in the bootstrap. */
import type { PatchesResult } from '../protocol.ts';
import type { UpstreamFailures } from '../xds/xds-pause.ts';
import { pauseAfter, withFailure } from '../xds/xds-pause.ts';

export interface PatchesWait {
  readonly failures: UpstreamFailures;
  /** Until it is asked again. */
  readonly pauseMs: number;
}

/** One more failure; of an effect that broke nothing is known. */
export function waitAfter({ failures }: PatchesWait, answer: PatchesResult | undefined): PatchesWait {
  const known = answer?.is === 'unreachable' ? answer : { isRefusal: false, retryAfterMs: 0, chance: 0.5 };
  const next = withFailure(failures, known);
  return { failures: next, pauseMs: pauseAfter(next, known.chance) };
}
