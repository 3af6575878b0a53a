/** Where it fails it tells by itself, or throws. */
type Take = () => void | Promise<void>;

/**
 * Which of two programs, one of which takes the place of the other, owns the names of sockets and the ports that both need: the one that
 * has the right to decide. A registry beside the charts, as the base ids are, which are that right: taken and given up together with them.
 */
export class Ownership {
  readonly #takers = new Set<Take>();
  readonly #leavers = new Set<() => Promise<void>>();
  #isOurs: boolean;

  constructor(isOurs: boolean) {
    this.#isOurs = isOurs;
  }

  get isOurs(): boolean {
    return this.#isOurs;
  }

  /** Called at once if this program owns them, and whenever it comes to, perhaps once more. @returns undoes it */
  whenOurs(take: Take): () => void {
    if (this.#isOurs) void take();
    this.#takers.add(take);
    return () => this.#takers.delete(take);
  }

  /** Called when the other program has it all and this one ends: what it has begun is finished within a limit. @returns undoes it */
  whenLeft(leave: () => Promise<void>): () => void {
    this.#leavers.add(leave);
    return () => this.#leavers.delete(leave);
  }

  /** Over when all is taken. @throws Error when something is not to be had */
  async take(): Promise<void> {
    this.#isOurs = true;
    await Promise.all([...this.#takers].map(async (take) => take()));
  }

  giveUp(): void {
    this.#isOurs = false;
  }

  async leave(): Promise<void> {
    await Promise.all([...this.#leavers].map((leave) => leave()));
  }
}
