/**
 * Where the time went: from the end backwards, always to the cause. Each stretch of time between a record and its cause was
 * spent by whoever wrote the later of the two. Runs in a browser.
 */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from '../trace/cause-chain.ts';

export interface TimePart {
  /** Who spent it: an effect, or an actor's timer. */
  readonly what: string;
  readonly ms: number;
}

/** Less is not worth a word. */
const leastMs = 1;

/**
 * @param from the record at the end
 * @param links its causes, up to the one that the time is counted from
 */
export function timeSpent(from: TraceRecord, links: readonly CauseLink[]): TimePart[] {
  const spent = new Map<string, number>();
  let later = from;
  for (const { record } of links) {
    const ms = later.t - record.t;
    if (ms > 0) spent.set(spender(later), (spent.get(spender(later)) ?? 0) + ms);
    later = record;
  }
  return [...spent]
    .map(([what, ms]) => ({ what, ms }))
    .filter(({ ms }) => ms >= leastMs)
    .sort((a, b) => b.ms - a.ms);
}

/** Time passes while a timer runs or an effect works; charts take none. */
function spender(record: TraceRecord): string {
  switch (record.kind) {
    case 'timer':
      return `timer ${record.timer} of ${record.actor}`;
    case 'event':
      return record.from;
    default:
      return record.actor;
  }
}
