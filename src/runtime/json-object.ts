/** An object as JSON has them: neither null nor a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field's name in a JSON Pointer (RFC 6901 §3). */
export function escapedPointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
