/** Decides which actors of key sets start next. Starting one takes up to 0.3 ms, so a thousand at once would block the program. */

export const maxStartsAtATime = 12;
/** Pause between batches: any value lets other work run. */
export const startPauseMs = 1;

interface StartableSource {
  readonly users: readonly string[];
  readonly isStarted: boolean;
}

/** Namespaces take turns, so that one with many key sets delays no other. */
export function selectStarts<Source extends StartableSource>(sources: readonly Source[]): readonly Source[] {
  const counts = new Map<string, number>();
  const rankedSources = sources.flatMap((source) => {
    if (source.isStarted) return [];
    const namespace = source.users[0]?.split('/')[1] ?? '';
    const rank = counts.get(namespace) ?? 0;
    counts.set(namespace, rank + 1);
    return { source, place: rank };
  });
  rankedSources.sort((a, b) => a.place - b.place);
  return rankedSources.slice(0, maxStartsAtATime).map(({ source }) => source);
}
