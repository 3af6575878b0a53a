/** Objects of the model as JSON: a Map goes out as an object, a Set as a list, a bigint as a number's text. */
export function jsonText(body: unknown, pretty: boolean): string {
  return JSON.stringify(body, plain, pretty ? 2 : undefined);
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  return typeof value === 'bigint' ? String(value) : value;
}
