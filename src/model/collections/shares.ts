/** How many there are of each. */
export class Shares {
  readonly #counts = new Map<string, number>();

  /** How many the one has that has the most. */
  get most(): number {
    return Math.max(0, ...this.#counts.values());
  }

  of(whose: string): number {
    return this.#counts.get(whose) ?? 0;
  }

  add(whose: string, more: number): void {
    const count = this.of(whose) + more;
    if (count === 0) this.#counts.delete(whose);
    else this.#counts.set(whose, count);
  }
}
