/**
 * Original specs, for kinds that other control planes can subscribe to (docs/config-over-xds.md). JSON text, because decoded specs have other names
 * and units, and parsed values need ten times as much memory.
 */
const writtenSpecs = new WeakMap<object, string>();

export function storeWrittenSpec(decodedObject: unknown, spec: unknown): void {
  if (typeof decodedObject === 'object' && decodedObject !== null)
    writtenSpecs.set(decodedObject, JSON.stringify(spec));
}

export function writtenSpec(decodedObject: unknown): string | undefined {
  return typeof decodedObject === 'object' && decodedObject !== null ? writtenSpecs.get(decodedObject) : undefined;
}
