/** Services by who sees them and by name (spec/discovery.md §6.3, §8.8). Immutable; lists per namespace are made when asked for. */
import { listDiff } from '../collections/list-diff.ts';
import type { Service } from './service.ts';
import { isExportedTo, isPublic } from './visibility.ts';

export class ServiceIndex {
  /** Oldest first. */
  readonly services: readonly Service[];
  /**
   * Everybody sees the same, and every host means the same to all: no service is kept from anybody, no host is of two
   * namespaces.
   */
  readonly isShared: boolean;
  private readonly byHost: ReadonlyMap<string, readonly Service[]>;
  private readonly hiddenServices: number;
  private readonly ambiguousHosts: number;
  private readonly visible = new Map<string, readonly Service[]>();

  /**
   * @param services oldest first
   * @param previous what has not changed since is taken over
   */
  constructor(services: readonly Service[], previous?: ServiceIndex) {
    this.services = services;
    const { removed, added } = listDiff(previous?.services ?? [], services);
    const gone = new Set(removed);
    const byHost = new Map(previous?.byHost);
    let ambiguous = previous?.ambiguousHosts ?? 0;
    const come = Map.groupBy(added, (service) => service.hostname);
    for (const host of new Set([...removed.map((service) => service.hostname), ...come.keys()])) {
      const before = byHost.get(host) ?? [];
      const kept = before.filter((service) => !gone.has(service));
      const added = come.get(host) ?? [];
      const mixed = kept.length > 0 && added.length > 0;
      const now = mixed ? services.filter(({ hostname }) => hostname === host) : [...kept, ...added];
      ambiguous += Number(isAmbiguous(now)) - Number(isAmbiguous(before));
      if (now.length === 0) byHost.delete(host);
      else byHost.set(host, now);
    }
    this.byHost = byHost;
    this.ambiguousHosts = ambiguous;
    this.hiddenServices = (previous?.hiddenServices ?? 0) - countHidden(removed) + countHidden(added);
    this.isShared = this.hiddenServices === 0 && ambiguous === 0;
  }

  visibleTo(namespace: string): readonly Service[] {
    if (this.hiddenServices === 0) return this.services;
    let list = this.visible.get(namespace);
    if (list === undefined) {
      list = this.services.filter((service) => isExportedTo(service.exportTo, service.namespace, namespace));
      this.visible.set(namespace, list);
    }
    return list;
  }

  /** Whether any namespace has a service of the host. */
  has(hostname: string): boolean {
    return this.byHost.has(hostname);
  }

  of(hostname: string, namespace: string): readonly Service[] {
    return (this.byHost.get(hostname) ?? []).filter((service) => service.namespace === namespace);
  }

  /** What a host name means to a client of a namespace. */
  meaningOf(hostname: string, clientNamespace: string): Service | undefined {
    let best: Service | undefined;
    for (const service of this.byHost.get(hostname) ?? []) {
      if (!isExportedTo(service.exportTo, service.namespace, clientNamespace)) continue;
      if (best === undefined || takesPrecedence(service, best, clientNamespace)) best = service;
    }
    return best;
  }
}

function isAmbiguous(services: readonly Service[]): boolean {
  return services.some((service) => service.namespace !== services[0]!.namespace);
}

function countHidden(services: readonly Service[]): number {
  return services.filter((service) => !isPublic(service.exportTo)).length;
}

/**
 * Whether a service takes the host name from an older one: the own namespace's first, then Kubernetes' (nobody else may
 * squat on its names), else the older stays.
 */
export function takesPrecedence(younger: Service, older: Service, clientNamespace: string): boolean {
  if (older.namespace === clientNamespace || younger.namespace === older.namespace) return false;
  if (younger.namespace === clientNamespace) return true;
  return younger.registry === 'Kubernetes' && older.registry !== 'Kubernetes';
}
