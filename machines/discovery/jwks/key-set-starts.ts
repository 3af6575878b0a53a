/**
 * Which actors of key sets start next. An actor costs up to 0.3 ms to start, so that a thousand at once would block the program.
 */

/** Actors that start at a time. */
export const maxStartsAtATime = 12;
/** Time between two starts: any is enough for other work of the program to run. */
export const startPauseMs = 1;

interface Startable {
  readonly users: readonly string[];
  readonly isStarted: boolean;
}

/** The next sources, which namespaces have in turns: a namespace with many does not delay another. */
export function selectStarts<Source extends Startable>(sources: readonly Source[]): readonly Source[] {
  const counts = new Map<string, number>();
  const placed = sources.flatMap((source) => {
    if (source.isStarted) return [];
    const namespace = source.users[0]?.split('/')[1] ?? '';
    const place = counts.get(namespace) ?? 0;
    counts.set(namespace, place + 1);
    return { source, place };
  });
  placed.sort((a, b) => a.place - b.place);
  return placed.slice(0, maxStartsAtATime).map(({ source }) => source);
}
