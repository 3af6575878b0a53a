/** Reported by the Gateway's condition `Programmed`. */
export interface DeploymentFailure {
  /** `NoResources` if a quota is exceeded, `Invalid` if the Gateway or its parameters are invalid, otherwise `DeploymentFailed`. */
  readonly reason: 'NoResources' | 'Invalid' | 'DeploymentFailed';
  /** Message of the API server or of the Gateway's validation. */
  readonly message: string;
}

export class DeploymentFailures {
  #current: ReadonlyMap<string, DeploymentFailure> = new Map();
  readonly #watchers = new Set<() => void>();

  get failuresByGateway(): ReadonlyMap<string, DeploymentFailure> {
    return this.#current;
  }

  set(key: string, failure: DeploymentFailure): void {
    const previous = this.#current.get(key);
    if (previous?.reason === failure.reason && previous.message === failure.message) return;
    this.#change(new Map(this.#current).set(key, failure));
  }

  delete(key: string): void {
    if (this.#current.has(key)) this.#change(new Map([...this.#current].filter(([failedKey]) => failedKey !== key)));
  }

  /** Called at the start of a term, because another replica may have deployed. */
  clear(): void {
    if (this.#current.size > 0) this.#change(new Map());
  }

  onChanged(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => void this.#watchers.delete(onChange);
  }

  #change(next: ReadonlyMap<string, DeploymentFailure>): void {
    this.#current = next;
    for (const notifyWatcher of this.#watchers) notifyWatcher();
  }
}
