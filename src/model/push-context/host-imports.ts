import { isHostWithin, isWildcard, mostSpecificKey } from '../fields/hostname.ts';

export class HostImports {
  private readonly importedHosts = new Map<string, Set<string>>();
  private readonly excludedHosts = new Map<string, Set<string>>();

  get hosts(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.importedHosts;
  }

  get isEverything(): boolean {
    return this.importedHosts.get('*')?.has('*') === true && this.excludedHosts.size === 0;
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
      const hostsByNamespace = isExcluded ? this.excludedHosts : this.importedHosts;
      hostsByNamespace.set(
        namespace,
        (hostsByNamespace.get(namespace) ?? new Set<string>()).add(text.slice(slash + 1)),
      );
    }
  }

  excludes(namespace: string, host: string): boolean {
    if (this.excludedHosts.size === 0) return false;
    const sets = [this.excludedHosts.get(namespace), this.excludedHosts.get('*')];
    return sets.some((hosts) => hosts !== undefined && mostSpecificKey(host, hosts) !== undefined);
  }

  includes(namespace: string, host: string): boolean {
    return this.sets(namespace).some((hosts) => mostSpecificKey(host, hosts) !== undefined);
  }

  mayAffect(namespace: string, host: string): boolean {
    if (this.includes(namespace, host)) return true;
    return (
      isWildcard(host) &&
      this.sets(namespace).some((hosts) => [...hosts].some((importedHost) => isHostWithin(importedHost, host)))
    );
  }

  private sets(namespace: string): ReadonlySet<string>[] {
    return [this.importedHosts.get(namespace), this.importedHosts.get('*')].filter((hosts) => hosts !== undefined);
  }
}
