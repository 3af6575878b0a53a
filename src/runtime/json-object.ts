/** Neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field's name in a JSON Pointer (RFC 6901 §3). */
export function escapedPointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The key is untrusted: names that every object inherits, such as `constructor` and `__proto__`, are `undefined` unless they are own properties. */
export function ownValue<Value>(record: Readonly<Record<string, Value>> | undefined, key: string): Value | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
