/** Istio's StringMatch; the key selects the comparison. */
export type StringMatch = { readonly exact: string } | { readonly prefix: string } | { readonly regex: string };

/** `present` is an empty StringMatch, or regex `*`. */
export type ValueMatch = StringMatch | { readonly present: true };
