/** Time limits of events. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/**
 * Milliseconds for processes and files; event loop iterations for events that occur within a few: on a busy machine iterations take longer, but their
 * number stays the same.
 */
export type Limit = { readonly ms: number } | { readonly turns: number };

/** Polling every 2 ms used a fifth of the CPU time of six concurrent suites. */
const everyMs = 8;

/** Polls until there is a value; `undefined` if the last poll after the limit found none. */
export async function pollWithin<Value>(limit: Limit, poll: () => Value | undefined): Promise<Value | undefined> {
  const isOver = startLimit(limit);
  for (;;) {
    const last = isOver();
    const polledValue = poll();
    if (polledValue !== undefined || last) return polledValue;
    await ('turns' in limit ? turn() : sleep(everyMs));
  }
}

function startLimit(limit: Limit): () => boolean {
  if ('turns' in limit) {
    let remainingTurns = limit.turns;
    return () => remainingTurns-- <= 0;
  }
  const deadline = performance.now() + limit.ms;
  return () => performance.now() >= deadline;
}
