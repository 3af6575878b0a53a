/** Matches hosts against `hosts` of a Sidecar's egress listener. */
import { isHostWithin, isWildcard, mostSpecific } from '../fields/hostname.ts';

export class HostImports {
  private readonly imported = new Map<string, Set<string>>();
  private readonly excluded = new Map<string, Set<string>>();

  /** Hosts by namespace; `*` means any namespace. */
  get hosts(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.imported;
  }

  get isEverything(): boolean {
    return this.imported.get('*')?.has('*') === true && this.excluded.size === 0;
  }

  /**
   * @param hosts `namespace/host`; `.` means `ownNamespace`. `~` before the namespace excludes services of the host, regardless of other imports; `~`
   * without a namespace excludes them in all namespaces.
   */
  constructor(hosts: readonly string[], ownNamespace: string) {
    for (const text of hosts) {
      const slash = text.indexOf('/');
      const isExcluded = text.startsWith('~');
      const namespaceText = text.slice(isExcluded ? 1 : 0, slash) || '*';
      const namespace = namespaceText === '.' ? ownNamespace : namespaceText;
      const hostsByNamespace = isExcluded ? this.excluded : this.imported;
      hostsByNamespace.set(
        namespace,
        (hostsByNamespace.get(namespace) ?? new Set<string>()).add(text.slice(slash + 1)),
      );
    }
  }

  excludes(namespace: string, host: string): boolean {
    if (this.excluded.size === 0) return false;
    const sets = [this.excluded.get(namespace), this.excluded.get('*')];
    return sets.some((hosts) => hosts !== undefined && mostSpecific(host, hosts) !== undefined);
  }

  includes(namespace: string, host: string): boolean {
    return this.sets(namespace).some((hosts) => mostSpecific(host, hosts) !== undefined);
  }

  /** Whether a host or wildcard of a namespace overlaps the imports. */
  touches(namespace: string, host: string): boolean {
    if (this.includes(namespace, host)) return true;
    return (
      isWildcard(host) &&
      this.sets(namespace).some((hosts) => [...hosts].some((importedHost) => isHostWithin(importedHost, host)))
    );
  }

  private sets(namespace: string): ReadonlySet<string>[] {
    return [this.imported.get(namespace), this.imported.get('*')].filter((hosts) => hosts !== undefined);
  }
}
