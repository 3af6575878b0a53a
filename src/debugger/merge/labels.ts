/** Returns `gateway` for `traces/gateway.trace.ndjson`; labels are numbered if two files have the same name. */
export function labelsOf(traces: readonly string[]): string[] {
  const usedCounts = new Map<string, number>();
  return traces.map((path) => {
    // A colon separates the label from the name of an actor.
    const name =
      path
        .slice(path.lastIndexOf('/') + 1)
        .replace(/\..*$/, '')
        .replaceAll(':', '-') || 'trace';
    const count = (usedCounts.get(name) ?? 0) + 1;
    usedCounts.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  });
}
