/** Charts that left a moment ago: they are shown a little longer, or a step would make them vanish unseen. */
import type { Recording } from './recording.ts';

export interface Departed {
  readonly actor: string;
  readonly status: 'done' | 'stopped' | 'error';
}

const shownForMs = 1_000;
/** Of many that leave at once, the last ones are enough. */
const atMost = 4;
/** Records that are looked back at: a busy trace has thousands in a second. */
const lookedAt = 200;

export function departed(recording: Recording, place: number): Departed[] {
  const living = recording.stateAt(place).actors;
  const found: Departed[] = [];
  const since = recording.timeAt(place) - shownForMs;
  for (let index = place; index >= 0 && index > place - lookedAt; index--) {
    const record = recording.recordAt(index)!;
    if (record.t < since || found.length === atMost) break;
    // An effect's name is its parent's and its own.
    if (record.kind !== 'stop' || record.actor.includes('/')) continue;
    if (!living.has(record.actor) && !found.some(({ actor }) => actor === record.actor)) {
      found.push({ actor: record.actor, status: record.status });
    }
  }
  return found.reverse();
}
