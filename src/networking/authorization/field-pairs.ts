/** A field of a rule and its negation, such as `paths` and `notPaths`. */

export interface FieldPair<Of, Matcher> {
  readonly allowedField: keyof Of;
  readonly excludedField: keyof Of;
  readonly matcher: Matcher;
  readonly needsHttp?: true;
}

export function applicablePairs<Pair extends FieldPair<never, unknown>>(
  pairs: readonly Pair[],
  http: boolean,
): readonly Pair[] {
  return pairs.filter(({ needsHttp }) => http || !needsHttp);
}

export function usesRequestFields<Of>(source: Of, pairs: readonly FieldPair<Of, unknown>[]): boolean {
  return pairs.some(
    ({ allowedField, excludedField, needsHttp }) =>
      needsHttp && (source[allowedField] ?? source[excludedField]) !== undefined,
  );
}
