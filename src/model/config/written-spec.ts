/**
 * Original specs, for kinds that other control planes can subscribe to (docs/config-over-xds.md). JSON text, because decoded specs have other names
 * and units, and parsed values need ten times as much memory.
 */
const writtenSpecs = new WeakMap<object, string>();

export function storeWrittenSpec(decoded: unknown, spec: unknown): void {
  if (typeof decoded === 'object' && decoded !== null) writtenSpecs.set(decoded, JSON.stringify(spec));
}

/** `undefined` for generated objects and for other kinds. */
export function writtenSpec(decoded: unknown): string | undefined {
  return typeof decoded === 'object' && decoded !== null ? writtenSpecs.get(decoded) : undefined;
}
