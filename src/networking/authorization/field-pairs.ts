/** Fields of a rule that come in pairs: `paths` and `notPaths`. */

export interface FieldPair<Of, Matcher> {
  /** Of the values that are wanted. */
  readonly is: keyof Of;
  /** Of those that are not. */
  readonly isNot: keyof Of;
  readonly matcher: Matcher;
  /** Only requests have it, connections do not. */
  readonly ofRequests?: true;
}

/** Those that can be matched: on a connection without what only requests have. */
export function matchable<Pair extends FieldPair<never, unknown>>(
  pairs: readonly Pair[],
  http: boolean,
): readonly Pair[] {
  return pairs.filter(({ ofRequests }) => http || !ofRequests);
}

/** Whether a rule asks for what only requests have. */
export function asksForRequests<Of>(of: Of, pairs: readonly FieldPair<Of, unknown>[]): boolean {
  return pairs.some(({ is, isNot, ofRequests }) => ofRequests && (of[is] ?? of[isNot]) !== undefined);
}
