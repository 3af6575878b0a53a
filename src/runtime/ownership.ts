/** A callback that reports its failure itself, or throws. */
type AcquireResource = () => void | Promise<void>;

/** Determines which of two agents, of which one replaces the other, owns the socket names and ports that both need. */
export class Ownership {
  readonly #acquireCallbacks = new Set<AcquireResource>();
  readonly #releaseCallbacks = new Set<() => Promise<void>>();
  #isOwned: boolean;

  constructor(isOwned: boolean) {
    this.#isOwned = isOwned;
  }

  get isOurs(): boolean {
    return this.#isOwned;
  }

  /** The callback runs immediately if this program is the owner, and each time it becomes the owner. */
  onAcquired(acquire: AcquireResource): () => void {
    if (this.#isOwned) void acquire();
    this.#acquireCallbacks.add(acquire);
    return () => this.#acquireCallbacks.delete(acquire);
  }

  /** The callback runs when the other program owns all resources, and must finish its work within a limit. */
  onReleased(release: () => Promise<void>): () => void {
    this.#releaseCallbacks.add(release);
    return () => this.#releaseCallbacks.delete(release);
  }

  /** @throws Error if a resource is unavailable */
  async acquireAll(): Promise<void> {
    this.#isOwned = true;
    await Promise.all([...this.#acquireCallbacks].map(async (acquire) => acquire()));
  }

  relinquish(): void {
    this.#isOwned = false;
  }

  async leave(): Promise<void> {
    await Promise.all([...this.#releaseCallbacks].map((leave) => leave()));
  }
}
