/** A field of a rule and its negation, such as `paths` and `notPaths`. */

export interface FieldPair<Of, Matcher> {
  readonly is: keyof Of;
  readonly isNot: keyof Of;
  readonly matcher: Matcher;
  /** The field exists only for HTTP. */
  readonly ofRequests?: true;
}

export function applicablePairs<Pair extends FieldPair<never, unknown>>(
  pairs: readonly Pair[],
  http: boolean,
): readonly Pair[] {
  return pairs.filter(({ ofRequests }) => http || !ofRequests);
}

export function usesRequestFields<Of>(fieldHolder: Of, pairs: readonly FieldPair<Of, unknown>[]): boolean {
  return pairs.some(({ is, isNot, ofRequests }) => ofRequests && (fieldHolder[is] ?? fieldHolder[isNot]) !== undefined);
}
