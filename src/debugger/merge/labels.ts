/** What programs are called that are put on one axis. Runs in a browser. */

/** `gateway` of `traces/gateway.trace.ndjson`; numbered where two files are called alike. */
export function labelsOf(traces: readonly string[]): string[] {
  const used = new Map<string, number>();
  return traces.map((path) => {
    // A colon ends it in the names of its actors.
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
