/** Failed deployments of Gateways, reported by the duty that deploys them and read by the duty that writes their status. */

/** Content of the Gateway's condition `Programmed`. */
export interface DeploymentFailure {
  /** `NoResources`: a quota is exceeded; `Invalid`: the Gateway or its parameters; `DeploymentFailed`: anything else. */
  readonly reason: 'NoResources' | 'Invalid' | 'DeploymentFailed';
  /** From the API server, or an error in the Gateway. */
  readonly message: string;
}

export class DeploymentFailures {
  #current: ReadonlyMap<string, DeploymentFailure> = new Map();
  readonly #watchers = new Set<() => void>();

  /** By namespace and name of the Gateway. Immutable: each change replaces the map. */
  get current(): ReadonlyMap<string, DeploymentFailure> {
    return this.#current;
  }

  set(key: string, failure: DeploymentFailure): void {
    const previous = this.#current.get(key);
    if (previous?.reason === failure.reason && previous.message === failure.message) return;
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
