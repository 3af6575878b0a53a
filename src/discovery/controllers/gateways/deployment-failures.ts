/** Gateways whose objects could not be written: the duty that deploys them reports here, and the duty of their status reads it. */

/** As the condition `Programmed` of the Gateway reports it. */
export interface DeploymentFailure {
  /** `NoResources`: a quota is exceeded; `Invalid`: the Gateway or its parameters; `DeploymentFailed`: anything else. */
  readonly reason: 'NoResources' | 'Invalid' | 'DeploymentFailed';
  /** Of the API server, or what is wrong with the Gateway. */
  readonly message: string;
}

export class DeploymentFailures {
  #current: ReadonlyMap<string, DeploymentFailure> = new Map();
  readonly #watchers = new Set<() => void>();

  /** By namespace and name of the Gateway; another map after each change. */
  get current(): ReadonlyMap<string, DeploymentFailure> {
    return this.#current;
  }

  set(key: string, failure: DeploymentFailure): void {
    const before = this.#current.get(key);
    if (before?.reason === failure.reason && before.message === failure.message) return;
    this.#change(new Map(this.#current).set(key, failure));
  }

  delete(key: string): void {
    if (this.#current.has(key)) this.#change(new Map([...this.#current].filter(([one]) => one !== key)));
  }

  /** Another replica may have written since. */
  clear(): void {
    if (this.#current.size > 0) this.#change(new Map());
  }

  onChanged(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  #change(next: ReadonlyMap<string, DeploymentFailure>): void {
    this.#current = next;
    for (const changed of this.#watchers) changed();
  }
}
