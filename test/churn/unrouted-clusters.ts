/** Clusters of one proxy that wait for routes: the server holds routes back until the proxy can use the clusters that they name. */
export class UnroutedClusters {
  readonly #sinceMs = new Map<string, number>();

  added(cluster: string, atMs: number): void {
    if (!this.#sinceMs.has(cluster)) this.#sinceMs.set(cluster, atMs);
  }

  removed(cluster: string): void {
    this.#sinceMs.delete(cluster);
  }

  /** Routes name these. */
  routed(clusters: ReadonlySet<string>): void {
    for (const cluster of this.#sinceMs.keys()) if (clusters.has(cluster)) this.#sinceMs.delete(cluster);
  }

  /** Forgets all: the proxy does not acknowledge what it is sent. */
  clear(): void {
    this.#sinceMs.clear();
  }

  /** Takes out those that have waited since that time or longer. */
  takeLate(sinceMs: number): string[] {
    const late = [...this.#sinceMs].filter(([, addedMs]) => addedMs <= sinceMs).map(([cluster]) => cluster);
    for (const cluster of late) this.#sinceMs.delete(cluster);
    return late;
  }
}
