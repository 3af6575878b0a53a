/**
 * Services by who sees them and by name (spec/discovery.md §6.3, §8.8). Immutable; lists are made when asked for, one for all
 * namespaces that see the same: a private service makes a list of its own for those who see it, and for nobody else.
 */
import { listDiff } from '../collections/list-diff.ts';
import { sameItems } from '../collections/same-items.ts';
import type { Service } from './service.ts';
import { isExportedTo, isPublic, nobodysNamespace } from './visibility.ts';

type HostsByNamespace = ReadonlyMap<string, ReadonlySet<string>>;

export class ServiceIndex {
  /** Oldest first. */
  readonly services: readonly Service[];
  private readonly byHost: ReadonlyMap<string, readonly Service[]>;
  /** Hosts that are kept from some, or are of several namespaces. */
  private readonly special: ReadonlySet<string>;
  /** The special hosts that may mean something else to a namespace than to a stranger. */
  private readonly exceptions: HostsByNamespace;
  private readonly byNamespace: ReadonlyMap<string, readonly Service[]>;
  private readonly visible: SharedLists;
  private readonly meant: SharedLists;

  /**
   * @param services oldest first
   * @param previous what has not changed since is taken over
   */
  constructor(services: readonly Service[], previous?: ServiceIndex) {
    this.services = services;
    const { removed, added } = listDiff(previous?.services ?? [], services);
    const gone = new Set(removed);
    const byHost = new Map(previous?.byHost);
    const special = new Set(previous?.special);
    const exceptions = new Edited(previous?.exceptions);
    const come = Map.groupBy(added, (service) => service.hostname);
    for (const host of new Set([...removed.map((service) => service.hostname), ...come.keys()])) {
      const before = byHost.get(host) ?? [];
      const kept = before.filter((service) => !gone.has(service));
      const added = come.get(host) ?? [];
      const mixed = kept.length > 0 && added.length > 0;
      const now = mixed ? services.filter(({ hostname }) => hostname === host) : [...kept, ...added];
      for (const namespace of namesIn(before)) exceptions.delete(namespace, host);
      for (const namespace of namesIn(now)) exceptions.add(namespace, host);
      if (isSpecial(now)) special.add(host);
      else special.delete(host);
      if (now.length === 0) byHost.delete(host);
      else byHost.set(host, now);
    }
    this.byHost = byHost;
    this.special = special;
    this.exceptions = exceptions.sets;
    this.byNamespace = editedLists(previous?.byNamespace, removed, added, services);
    this.visible = new SharedLists(previous?.visible);
    this.meant = new SharedLists(previous?.meant);
  }

  /** All that a namespace sees. */
  visibleTo(namespace: string): readonly Service[] {
    return this.visible.of(this.viewOf(namespace), (view) =>
      this.chosen((service) => isExportedTo(service.exportTo, service.namespace, view)),
    );
  }

  /** What the hosts that a namespace sees mean to it: of a host that several namespaces define, the services of one (§8.8). */
  meantTo(namespace: string): readonly Service[] {
    return this.meant.of(this.viewOf(namespace), (view) => {
      const owners = new Map<string, string | undefined>();
      return this.chosen((service) => {
        const { hostname } = service;
        if (!owners.has(hostname)) owners.set(hostname, this.meaningOf(hostname, view)?.namespace);
        return owners.get(hostname) === service.namespace && isExportedTo(service.exportTo, service.namespace, view);
      });
    });
  }

  /** The services of a namespace, oldest first, whoever sees them. */
  definedIn(namespace: string): readonly Service[] {
    return this.byNamespace.get(namespace) ?? [];
  }

  /** The services of a host, of any namespace. */
  named(hostname: string): readonly Service[] {
    return this.byHost.get(hostname) ?? [];
  }

  /** Whether any namespace has a service of the host. */
  has(hostname: string): boolean {
    return this.byHost.has(hostname);
  }

  of(hostname: string, namespace: string): readonly Service[] {
    return this.named(hostname).filter((service) => service.namespace === namespace);
  }

  /** What a host name means to a client of a namespace. */
  meaningOf(hostname: string, clientNamespace: string): Service | undefined {
    let best: Service | undefined;
    for (const service of this.named(hostname)) {
      if (!isExportedTo(service.exportTo, service.namespace, clientNamespace)) continue;
      if (best === undefined || takesPrecedence(service, best, clientNamespace)) best = service;
    }
    return best;
  }

  /** The namespace that sees the same as this one: itself, or a stranger to all exports. */
  private viewOf(namespace: string): string {
    return this.exceptions.has(namespace) ? namespace : nobodysNamespace;
  }

  private chosen(isChosen: (service: Service) => boolean): readonly Service[] {
    const { special, services } = this;
    return special.size === 0 ? services : services.filter((one) => !special.has(one.hostname) || isChosen(one));
  }
}

/** Lists by who sees them; the very list of the index before where it has the same services. */
class SharedLists {
  private readonly before: ReadonlyMap<string, readonly Service[]>;
  private readonly lists = new Map<string, readonly Service[]>();

  constructor(previous: SharedLists | undefined) {
    this.before = previous?.lists ?? new Map();
  }

  of(view: string, make: (view: string) => readonly Service[]): readonly Service[] {
    let list = this.lists.get(view);
    if (list === undefined) {
      const made = make(view);
      const alike = [this.before.get(view), view === nobodysNamespace ? undefined : this.of(nobodysNamespace, make)];
      list = alike.find((other) => other !== undefined && sameItems(other, made)) ?? made;
      this.lists.set(view, list);
    }
    return list;
  }
}

/** Sets of a map that is edited: those that change are copied. */
class Edited {
  readonly sets: Map<string, ReadonlySet<string>>;
  private readonly own = new Set<ReadonlySet<string>>();

  constructor(before: HostsByNamespace | undefined) {
    this.sets = new Map(before);
  }

  add(namespace: string, host: string): void {
    this.copyOf(namespace).add(host);
  }

  delete(namespace: string, host: string): void {
    const set = this.copyOf(namespace);
    set.delete(host);
    if (set.size === 0) this.sets.delete(namespace);
  }

  private copyOf(namespace: string): Set<string> {
    const known = this.sets.get(namespace);
    if (known !== undefined && this.own.has(known)) return known as Set<string>;
    const copy = new Set(known);
    this.own.add(copy);
    this.sets.set(namespace, copy);
    return copy;
  }
}

function editedLists(
  before: ReadonlyMap<string, readonly Service[]> | undefined,
  removed: readonly Service[],
  added: readonly Service[],
  services: readonly Service[],
): ReadonlyMap<string, readonly Service[]> {
  if (before === undefined) return Map.groupBy(services, ({ namespace }) => namespace);
  const touched = new Set([...removed, ...added].map(({ namespace }) => namespace));
  if (touched.size === 0) return before;
  const lists = new Map(before);
  for (const namespace of touched) lists.delete(namespace);
  const again = services.filter(({ namespace }) => touched.has(namespace));
  for (const [namespace, list] of Map.groupBy(again, (service) => service.namespace)) lists.set(namespace, list);
  return lists;
}

/** Whether a host does not mean the same to everybody. */
function isSpecial(services: readonly Service[]): boolean {
  return services.some(({ namespace, exportTo }) => !isPublic(exportTo) || namespace !== services[0]!.namespace);
}

/** Namespaces to which a special host may mean something else than to a stranger: who has it, and who it is shown to. */
function namesIn(services: readonly Service[]): ReadonlySet<string> {
  if (!isSpecial(services)) return new Set();
  return new Set(services.flatMap(({ namespace, exportTo }) => [namespace, ...exportTo]));
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
