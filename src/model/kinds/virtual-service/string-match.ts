/** Istio's StringMatch: which key is there says how to compare. */
export type StringMatch = { readonly exact: string } | { readonly prefix: string } | { readonly regex: string };

/** A match on a value that may also ask for nothing but its presence (an empty StringMatch, or regex `*`). */
export type ValueMatch = StringMatch | { readonly present: true };
