/** Limits repeated log lines that clients can cause: an unchanged line is logged again after 10 s. */

const sayAgainMs = 10_000;

export class SaidLines {
  readonly #now: () => number;
  readonly #said = new Map<string, { readonly reason: string; readonly at: number }>();

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Whether to log now.
   *
   * @param about key of the line; its values must be few, because each is stored
   */
  isDue(about: string, reason: string): boolean {
    const now = this.#now();
    const said = this.#said.get(about);
    if (said?.reason === reason && now - said.at < sayAgainMs) return false;
    this.#said.set(about, { reason, at: now });
    return true;
  }

  /** Makes the next line with this key due. */
  forget(about: string): void {
    this.#said.delete(about);
  }
}
