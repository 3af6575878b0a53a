/** Clients can cause repeated log lines; an unchanged line is logged again after 10 s. */

const repeatAfterMs = 10_000;

export class RepeatLimit {
  readonly #now: () => number;
  readonly #loggedByTopic = new Map<string, { readonly reason: string; readonly at: number }>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param topic key of the line; its values must be few, because each is stored */
  isDue(topic: string, reason: string): boolean {
    const nowMs = this.#now();
    const lastLogged = this.#loggedByTopic.get(topic);
    if (lastLogged?.reason === reason && nowMs - lastLogged.at < repeatAfterMs) return false;
    this.#loggedByTopic.set(topic, { reason, at: nowMs });
    return true;
  }

  reset(topic: string): void {
    this.#loggedByTopic.delete(topic);
  }
}
