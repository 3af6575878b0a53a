import type { PatchesResult } from '../protocol.ts';
import type { UpstreamFailures } from '../xds/xds-pause.ts';
import { pauseAfter, withFailure } from '../xds/xds-pause.ts';

export interface PatchesWait {
  readonly failures: UpstreamFailures;
  readonly pauseMs: number;
}

/** @param result `undefined` if the effect failed */
export function waitAfter({ failures }: PatchesWait, result: PatchesResult | undefined): PatchesWait {
  const lastUnreachable = result?.is === 'unreachable' ? result : { isRefusal: false, retryAfterMs: 0, chance: 0.5 };
  const nextFailures = withFailure(failures, lastUnreachable);
  return { failures: nextFailures, pauseMs: pauseAfter(nextFailures, lastUnreachable.chance) };
}
