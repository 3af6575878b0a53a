/** Charts that ended recently stay visible, so that a step does not hide them immediately. */
import type { PageRecording } from './recording.ts';

export interface RecentlyEnded {
  readonly actor: string;
  readonly status: 'done' | 'stopped' | 'error';
}

const shownForMs = 1_000;
/** If many end together, only the last ones are shown. */
const maxShown = 4;
/** Bounded because a busy trace has thousands of records per second. */
const maxCheckedRecords = 200;

export function recentlyEnded(recording: PageRecording, endIndex: number): RecentlyEnded[] {
  const liveActors = recording.stateAt(endIndex).actors;
  const endedActors: RecentlyEnded[] = [];
  const minTime = recording.timeAt(endIndex) - shownForMs;
  for (let index = endIndex; index >= 0 && index > endIndex - maxCheckedRecords; index--) {
    const record = recording.recordAt(index)!;
    if (record.t < minTime || endedActors.length === maxShown) break;
    // The name of an effect is `parent/effect`.
    if (record.kind !== 'stop' || record.actor.includes('/')) continue;
    if (!liveActors.has(record.actor) && !endedActors.some(({ actor }) => actor === record.actor)) {
      endedActors.push({ actor: record.actor, status: record.status });
    }
  }
  return endedActors.reverse();
}
