/** What comes of asking the control plane what it patches in the bootstrap. */
import type { Failures } from './xds-pause.ts';
import { failedAgain, pauseAfter } from './xds-pause.ts';

export type PatchesAnswer =
  | { readonly is: 'patched' | 'unpatched' }
  /** What it says cannot be made use of: by no try. */
  | { readonly is: 'unusable'; readonly reason: string }
  | {
      readonly is: 'unreachable';
      readonly reason: string;
      /** It answered, and did not want this agent. */
      readonly isRefusal: boolean;
      /** So long it asked to be left alone. */
      readonly retryAfterMs: number;
      /** From 0 to 1. */
      readonly chance: number;
    };

export interface PatchesWait {
  readonly failures: Failures;
  /** Until it is asked again. */
  readonly pauseMs: number;
}

/** One more failure; of an effect that broke nothing is known. */
export function waitAfter({ failures }: PatchesWait, answer: PatchesAnswer | undefined): PatchesWait {
  const known = answer?.is === 'unreachable' ? answer : { isRefusal: false, retryAfterMs: 0, chance: 0.5 };
  const next = failedAgain(failures, known);
  return { failures: next, pauseMs: pauseAfter(next, known.chance) };
}
