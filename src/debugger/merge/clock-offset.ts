/** How far one program's clock is from another's, as the messages between them allow: none arrives before it was sent. Runs in a browser. */

/** A message between two programs, in wall-clock milliseconds of each one's own clock. */
export interface Crossing {
  /** `true`: from the program whose offset is looked for, to the other one. */
  readonly outwards: boolean;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export interface ClockOffset {
  /** To be added to the program's clock; 0 where its wall clock may be right. */
  readonly ms: number;
  /** How far off that may be; infinite where messages went one way only, or none did. */
  readonly plusMinusMs: number;
  /** Messages that the offset agrees with. */
  readonly agreed: number;
}

/**
 * The tightest bounds are taken first; what contradicts them is left out.
 *
 * @param prior where the clocks are thought to be without any message
 */
export function clockOffset(crossings: readonly Crossing[], prior = 0): ClockOffset {
  let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  // An outward message bounds the offset from above, one that came from below.
  const bounds = crossings.map(({ outwards, sentAt, receivedAt }) => ({
    outwards,
    ms: outwards ? receivedAt - sentAt : sentAt - receivedAt,
  }));
  for (const { outwards, ms } of bounds.sort((a, b) => Math.abs(a.ms - prior) - Math.abs(b.ms - prior))) {
    if (outwards && ms >= least) most = Math.min(most, ms);
    if (!outwards && ms <= most) least = Math.max(least, ms);
  }
  const ms = Math.min(most, Math.max(least, prior));
  const agreed = bounds.filter((bound) => (bound.outwards ? ms <= bound.ms : ms >= bound.ms)).length;
  return { ms, plusMinusMs: Math.max(most - ms, ms - least), agreed };
}
