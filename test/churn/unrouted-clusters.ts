/**
 * Clusters of one proxy that wait for routes: the server delays routes until the proxy can use the clusters that they
 * name.
 */
export class UnroutedClusters {
  readonly #sinceMs = new Map<string, number>();

  get size(): number {
    return this.#sinceMs.size;
  }

  recordAdded(cluster: string, atMs: number): void {
    if (!this.#sinceMs.has(cluster)) this.#sinceMs.set(cluster, atMs);
  }

  recordRemoved(cluster: string): void {
    this.#sinceMs.delete(cluster);
  }

  /** Removes clusters that routes name now. */
  removeRouted(clusters: ReadonlySet<string>): void {
    for (const cluster of this.#sinceMs.keys()) if (clusters.has(cluster)) this.#sinceMs.delete(cluster);
  }

  /** Forgets all clusters, for a proxy that does not acknowledge responses. */
  clear(): void {
    this.#sinceMs.clear();
  }

  /** Removes and returns the clusters that have waited since this time or longer. */
  takeLate(sinceMs: number): string[] {
    const late = [...this.#sinceMs].filter(([, addedMs]) => addedMs <= sinceMs).map(([cluster]) => cluster);
    for (const cluster of late) this.#sinceMs.delete(cluster);
    return late;
  }
}
