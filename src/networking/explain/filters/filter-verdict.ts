/** What one filter does with a connection or request. */
import type { Outcome } from '../outcome.ts';

/**
 * `undefined`: the filter lets it pass. With a share, a fraction of the requests (0 to 1) ends here and the others pass.
 */
export type FilterVerdict = { readonly outcome: Outcome; readonly share?: number } | undefined;

/** Thrown where a condition depends on something that the question does not contain; the message says what. */
export class UndecidedError extends Error {}
