/** `gateway` for `traces/gateway.trace.ndjson`; numbered if two files have the same name. */
export function labelsOf(traces: readonly string[]): string[] {
  const used = new Map<string, number>();
  return traces.map((path) => {
    // A colon separates the label from the name of an actor.
    const name =
      path
        .slice(path.lastIndexOf('/') + 1)
        .replace(/\..*$/, '')
        .replaceAll(':', '-') || 'trace';
    const count = (used.get(name) ?? 0) + 1;
    used.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  });
}
