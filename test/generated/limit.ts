/** How long something may take to come. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/**
 * Milliseconds, where processes and files are waited for. Turns of the event loop, where all that can come comes within a few
 * of them: a busy machine makes those longer, and not more.
 */
export type Limit = { readonly ms: number } | { readonly turns: number };

/** Two milliseconds took a fifth of the whole work of those that run six side by side. */
const everyMs = 8;

/** Looks until there is something (not undefined); undefined when the limit is over and the last look found nothing. */
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
