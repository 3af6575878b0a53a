/** A callback that reports its failure itself, or throws. */
type AcquireResource = () => void | Promise<void>;

/** Determines which of two agents, of which one replaces the other, owns the socket names and ports that both need. */
export class Ownership {
  readonly #takers = new Set<AcquireResource>();
  readonly #leavers = new Set<() => Promise<void>>();
  #isOurs: boolean;

  constructor(isOurs: boolean) {
    this.#isOurs = isOurs;
  }

  get isOurs(): boolean {
    return this.#isOurs;
  }

  /** The callback runs immediately if this program is the owner, and each time it becomes the owner. */
  onAcquired(acquire: AcquireResource): () => void {
    if (this.#isOurs) void acquire();
    this.#takers.add(acquire);
    return () => this.#takers.delete(acquire);
  }

  /** The callback runs when the other program owns all resources, and must finish its work within a limit. */
  onReleased(leave: () => Promise<void>): () => void {
    this.#leavers.add(leave);
    return () => this.#leavers.delete(leave);
  }

  /** @throws Error if a resource is unavailable */
  async take(): Promise<void> {
    this.#isOurs = true;
    await Promise.all([...this.#takers].map(async (takeOver) => takeOver()));
  }

  giveUp(): void {
    this.#isOurs = false;
  }

  async leave(): Promise<void> {
    await Promise.all([...this.#leavers].map((leave) => leave()));
  }
}
