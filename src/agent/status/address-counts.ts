/** Number of open requests per client address. */
export class AddressCounts {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(address: string): number {
    return this.#counts.get(address) ?? 0;
  }

  enter(address: string): void {
    this.#total++;
    this.#counts.set(address, this.of(address) + 1);
  }

  leave(address: string): void {
    this.#total--;
    const left = this.of(address) - 1;
    if (left > 0) this.#counts.set(address, left);
    else this.#counts.delete(address);
  }
}
