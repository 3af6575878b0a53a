/** Fields of a rule that come in pairs: `paths` and `notPaths`. */

export interface FieldPair<Of, Matcher> {
  /** Name of the field with the values that are wanted. */
  readonly is: keyof Of;
  /** Name of the field with the values that are not wanted. */
  readonly isNot: keyof Of;
  readonly matcher: Matcher;
  /** Only requests have it, connections do not. */
  readonly ofRequests?: true;
}

/** The pairs that can be matched: on a connection those are left out that only requests have. */
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
