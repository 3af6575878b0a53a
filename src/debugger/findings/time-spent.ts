/** Attributes the time between a record and its cause to the actor of the later record. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from '../trace/cause-chain.ts';

export interface TimePart {
  /** The effect, or the timer of an actor. */
  readonly what: string;
  readonly ms: number;
}

const minMs = 1;

/** @param links causes of `from`, up to the first record of the measured time */
export function timeSpent(from: TraceRecord, links: readonly CauseLink[]): TimePart[] {
  const msByActivity = new Map<string, number>();
  let nextTime = from;
  for (const { record } of links) {
    const ms = nextTime.t - record.t;
    if (ms > 0)
      msByActivity.set(actorSpendingTime(nextTime), (msByActivity.get(actorSpendingTime(nextTime)) ?? 0) + ms);
    nextTime = record;
  }
  return [...msByActivity]
    .map(([activity, ms]) => ({ what: activity, ms }))
    .filter(({ ms }) => ms >= minMs)
    .sort((a, b) => b.ms - a.ms);
}

/** Only timers and effects take time; transitions of a machine take none. */
function actorSpendingTime(record: TraceRecord): string {
  switch (record.kind) {
    case 'timer':
      return `timer ${record.timer} of ${record.actor}`;
    case 'event':
      return record.from;
    default:
      return record.actor;
  }
}
