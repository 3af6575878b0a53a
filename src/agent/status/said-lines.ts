/** Lines of the log that anybody may cause as often as they like: what is the same is said again after a while only. */

const sayAgainMs = 10_000;

export class SaidLines {
  readonly #now: () => number;
  readonly #said = new Map<string, { readonly reason: string; readonly at: number }>();

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether it is to be said. @param about of a few known things: each is kept */
  isDue(about: string, reason: string): boolean {
    const now = this.#now();
    const said = this.#said.get(about);
    if (said?.reason === reason && now - said.at < sayAgainMs) return false;
    this.#said.set(about, { reason, at: now });
    return true;
  }

  /** What comes next is said, whatever it is. */
  forget(about: string): void {
    this.#said.delete(about);
  }
}
