export class AddressCounts {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  countOf(address: string): number {
    return this.#counts.get(address) ?? 0;
  }

  enter(address: string): void {
    this.#total++;
    this.#counts.set(address, this.countOf(address) + 1);
  }

  leave(address: string): void {
    this.#total--;
    const remainingCount = this.countOf(address) - 1;
    if (remainingCount > 0) this.#counts.set(address, remainingCount);
    else this.#counts.delete(address);
  }
}
