/**
 * Specs as their authors wrote them, for the kinds that other control planes can read from this one (docs/config-over-xds.md). They are kept
 * as text: a decoded spec has other names and units, and values of a file take ten times as much memory.
 */
const written = new WeakMap<object, string>();

/** Remembers how a decoded spec was written. */
export function rememberWritten(decoded: unknown, spec: unknown): void {
  if (typeof decoded === 'object' && decoded !== null) written.set(decoded, JSON.stringify(spec));
}

/** JSON of the spec as it was written; undefined for an object that the control plane made, and for other kinds. */
export function writtenSpec(decoded: unknown): string | undefined {
  return typeof decoded === 'object' && decoded !== null ? written.get(decoded) : undefined;
}
