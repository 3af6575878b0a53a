import type { RequestOutcome } from '../outcome.ts';

/** `undefined` if the filter continues. If `share` is set, the filter ends only this fraction of the requests (0 to 1). */
export type FilterResult = { readonly outcome: RequestOutcome; readonly share?: number } | undefined;

/** A condition depends on a fact that is missing in the question. The message names the fact. */
export class UndecidedError extends Error {}
