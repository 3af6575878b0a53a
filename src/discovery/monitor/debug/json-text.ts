/** JSON of model objects: a Map becomes an object, a Set an array, a bigint a string. */
export function jsonText(body: unknown, isIndented: boolean): string {
  return JSON.stringify(body, replaceCollections, isIndented ? 2 : undefined);
}

function replaceCollections(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  return typeof value === 'bigint' ? String(value) : value;
}
