/** The `hosts` of a Sidecar's egress listener: what it imports (spec/discovery.md §8.8). */
import { isHostWithin, isWildcard, mostSpecific } from '../fields/hostname.ts';

export class HostImports {
  private readonly byNamespace = new Map<string, Set<string>>();

  /** Hosts by namespace; `*` is any namespace. */
  get hosts(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.byNamespace;
  }

  /**
   * @param hosts `namespace/host`; `.` is the own namespace, `~` imports nothing
   */
  constructor(hosts: readonly string[], ownNamespace: string) {
    for (const text of hosts) {
      const slash = text.indexOf('/');
      const written = text.slice(0, slash);
      if (written === '~') continue;
      const namespace = written === '.' ? ownNamespace : written;
      const imported = this.byNamespace.get(namespace) ?? new Set<string>();
      this.byNamespace.set(namespace, imported.add(text.slice(slash + 1)));
    }
  }

  /** Whether a host of a namespace lies within what is imported. */
  includes(namespace: string, host: string): boolean {
    return this.sets(namespace).some((hosts) => mostSpecific(host, hosts) !== undefined);
  }

  /** Whether a host of a namespace, perhaps a wider one, has something to do with what is imported. */
  touches(namespace: string, host: string): boolean {
    if (this.includes(namespace, host)) return true;
    return isWildcard(host) && this.sets(namespace).some((hosts) => [...hosts].some((one) => isHostWithin(one, host)));
  }

  private sets(namespace: string): ReadonlySet<string>[] {
    return [this.byNamespace.get(namespace), this.byNamespace.get('*')].filter((hosts) => hosts !== undefined);
  }
}
