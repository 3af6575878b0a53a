/** What one filter does with a connection or request. */
import type { RequestOutcome } from '../outcome.ts';

/**
 * `undefined` if the filter continues. With a share, this fraction of the requests (0 to 1) ends here and the others
 * continue.
 */
export type FilterResult = { readonly outcome: RequestOutcome; readonly share?: number } | undefined;

/** A condition depends on something that the question does not contain. The message names it. */
export class UndecidedError extends Error {}
