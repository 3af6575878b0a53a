export class AddressCounts {
  readonly #counts = new Map<string, number>();
  #totalCount = 0;

  get totalCount(): number {
    return this.#totalCount;
  }

  countOf(address: string): number {
    return this.#counts.get(address) ?? 0;
  }

  increment(address: string): void {
    this.#totalCount++;
    this.#counts.set(address, this.countOf(address) + 1);
  }

  decrement(address: string): void {
    this.#totalCount--;
    const remainingCount = this.countOf(address) - 1;
    if (remainingCount > 0) this.#counts.set(address, remainingCount);
    else this.#counts.delete(address);
  }
}
