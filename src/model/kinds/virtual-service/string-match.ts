/** Istio's StringMatch; the key selects the comparison. */
export type StringMatch = { readonly exact: string } | { readonly prefix: string } | { readonly regex: string };

/** A match on a value, or on its presence (an empty StringMatch, or regex `*`). */
export type ValueMatch = StringMatch | { readonly present: true };
