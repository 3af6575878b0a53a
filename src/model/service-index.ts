/** Services by who sees them and by name (spec/discovery.md §6.3, §8.8). Immutable; lists per namespace are made when asked for. */
import type { Service } from './service.ts';
import { isExportedTo, isPublic } from './visibility.ts';

export class ServiceIndex {
  /** Oldest first. */
  readonly services: readonly Service[];
  private readonly byHost: ReadonlyMap<string, readonly Service[]>;
  private readonly allPublic: boolean;
  private readonly visible = new Map<string, readonly Service[]>();

  /** @param services oldest first */
  constructor(services: readonly Service[]) {
    this.services = services;
    this.byHost = Map.groupBy(services, (service) => service.hostname);
    this.allPublic = services.every((service) => isPublic(service.exportTo));
  }

  visibleTo(namespace: string): readonly Service[] {
    if (this.allPublic) return this.services;
    let list = this.visible.get(namespace);
    if (list === undefined) {
      list = this.services.filter((service) => isExportedTo(service.exportTo, service.namespace, namespace));
      this.visible.set(namespace, list);
    }
    return list;
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

/**
 * Whether a service takes the host name from an older one: the own namespace's first, then Kubernetes' (nobody else may
 * squat on its names), else the older stays.
 */
export function takesPrecedence(younger: Service, older: Service, clientNamespace: string): boolean {
  if (older.namespace === clientNamespace || younger.namespace === older.namespace) return false;
  if (younger.namespace === clientNamespace) return true;
  return younger.registry === 'Kubernetes' && older.registry !== 'Kubernetes';
}
