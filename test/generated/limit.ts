/** Time limits of events. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/**
 * Milliseconds for processes and files. Turns of the event loop where every event happens within a few
 * of them: a busy machine makes those longer, and not more.
 */
export type Limit = { readonly ms: number } | { readonly turns: number };

/** Two milliseconds took a fifth of the CPU time of the suites that run six at a time. */
const everyMs = 8;

/** Polls until there is a value; undefined when the limit has passed and the last poll found none. */
export async function foundWithin<Value>(limit: Limit, look: () => Value | undefined): Promise<Value | undefined> {
  const isOver = running(limit);
  for (;;) {
    const last = isOver();
    const found = look();
    if (found !== undefined || last) return found;
    await ('turns' in limit ? turn() : sleep(everyMs));
  }
}

function running(limit: Limit): () => boolean {
  if ('turns' in limit) {
    let left = limit.turns;
    return () => left-- <= 0;
  }
  const deadline = performance.now() + limit.ms;
  return () => performance.now() >= deadline;
}
