/** Durations that the agent does not control: random within measured bounds, the same for the same seed. */
export class RandomDurations {
  readonly #seed: number;

  /** @param seed 0: the middle of each range */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Returns a value between 0 and the maximum, sometimes exactly one of them. `what` identifies the occasion. */
  drawUniform(maxMs: number, occasion: string): number {
    const fraction = this.#draw(occasion) * 1.2 - 0.1;
    return Math.round(Math.min(1, Math.max(0, fraction)) * maxMs);
  }

  /** Returns mostly short values, rarely the maximum. */
  drawMostlyShort(maxMs: number, occasion: string): number {
    return Math.round(this.#draw(occasion) ** 3 * maxMs);
  }

  /** In [0, 1). */
  #draw(occasion: string): number {
    if (this.#seed === 0) return 0.5;
    // FNV-1a of the occasion, then a finalizer that spreads its bits.
    let hash = 0x811c9dc5 ^ this.#seed;
    for (let i = 0; i < occasion.length; i++) hash = Math.imul(hash ^ occasion.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
  }
}
