/** Estimates the offset between the clocks of two programs: no message arrives before it was sent. */

/** Times are wall-clock milliseconds of each program. */
export interface MessageCrossing {
  /** Whether the program with the unknown offset sent the message. */
  readonly isOutgoing: boolean;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export interface ClockOffset {
  /** Correction of the program's clock; 0 if its wall clock may be right. */
  readonly ms: number;
  /** Infinite if there are no messages in one direction. */
  readonly plusMinusMs: number;
  /** Messages that are consistent with the offset. */
  readonly consistentCount: number;
}

/** Applies the tightest bounds first and ignores bounds that contradict them. */
export function clockOffset(crossings: readonly MessageCrossing[], priorOffsetMs = 0): ClockOffset {
  let [min, max] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  // A sent message bounds the offset from above, a received one from below.
  const bounds = crossings.map(({ isOutgoing, sentAt, receivedAt }) => ({
    outwards: isOutgoing,
    ms: isOutgoing ? receivedAt - sentAt : sentAt - receivedAt,
  }));
  for (const { outwards, ms } of bounds.sort(
    (a, b) => Math.abs(a.ms - priorOffsetMs) - Math.abs(b.ms - priorOffsetMs),
  )) {
    if (outwards && ms >= min) max = Math.min(max, ms);
    if (!outwards && ms <= max) min = Math.max(min, ms);
  }
  const ms = Math.min(max, Math.max(min, priorOffsetMs));
  const consistentCount = bounds.filter((bound) => (bound.outwards ? ms <= bound.ms : ms >= bound.ms)).length;
  return { ms, plusMinusMs: Math.max(max - ms, ms - min), consistentCount };
}
