/**
 * Services by visibility and name. Immutable. Lists are built on first use; namespaces with the same view share them.
 */
import type { Steps } from '../../runtime/turns.ts';
import { changedList, listDiff } from '../collections/list-diff.ts';
import { sameItems } from '../collections/same-items.ts';
import type { Service } from './service.ts';
import { compareServiceAge } from './service-registry.ts';
import { isExportedTo, isPublic, publicViewNamespace } from './visibility.ts';

type HostsByNamespace = ReadonlyMap<string, ReadonlySet<string>>;

interface IndexParts {
  readonly services: readonly Service[];
  readonly byHost: ReadonlyMap<string, readonly Service[]>;
  readonly specialHosts: ReadonlySet<string>;
  readonly exceptions: HostsByNamespace;
  readonly byNamespace: ReadonlyMap<string, readonly Service[]>;
}

export class ServiceIndex {
  readonly services: readonly Service[];
  private readonly byHost: ReadonlyMap<string, readonly Service[]>;
  /** Hosts that are not visible to all namespaces, or are defined in several. */
  private readonly specialHosts: ReadonlySet<string>;
  /** Special hosts that may resolve differently from the public view, by client namespace. */
  private readonly exceptions: HostsByNamespace;
  private readonly byNamespace: ReadonlyMap<string, readonly Service[]>;
  private readonly visibleLists: SharedLists;
  private readonly resolvedLists: SharedLists;

  private constructor(indexParts: IndexParts, previous: ServiceIndex | undefined, edit: ServiceEdit | undefined) {
    this.services = indexParts.services;
    this.byHost = indexParts.byHost;
    this.specialHosts = indexParts.specialHosts;
    this.exceptions = indexParts.exceptions;
    this.byNamespace = indexParts.byNamespace;
    this.visibleLists = new SharedLists(previous?.visibleLists, edit);
    this.resolvedLists = new SharedLists(previous?.resolvedLists, edit);
  }

  static *buildInSteps(services: readonly Service[], previous?: ServiceIndex): Steps<ServiceIndex> {
    const { removed, added } = listDiff(previous?.services ?? [], services);
    const removedServices = new Set(removed);
    const servicesByHost = new Map(previous?.byHost);
    const specialHosts = new Set(previous?.specialHosts);
    const exceptions = new EditedSets(previous?.exceptions);
    const addedByHost = Map.groupBy(added, (service) => service.hostname);
    yield;
    for (const host of new Set([...removed.map((service) => service.hostname), ...addedByHost.keys()])) {
      const previousOfHost = servicesByHost.get(host) ?? [];
      const keptHostServices = previousOfHost.filter((service) => !removedServices.has(service));
      const addedServices = addedByHost.get(host) ?? [];
      const hasKeptAndAdded = keptHostServices.length > 0 && addedServices.length > 0;
      const currentOfHost = hasKeptAndAdded
        ? services.filter(({ hostname }) => hostname === host)
        : [...keptHostServices, ...addedServices];
      for (const namespace of namesIn(previousOfHost)) exceptions.delete(namespace, host);
      for (const namespace of namesIn(currentOfHost)) exceptions.add(namespace, host);
      if (isNamespaceDependent(currentOfHost)) specialHosts.add(host);
      else specialHosts.delete(host);
      if (currentOfHost.length === 0) servicesByHost.delete(host);
      else servicesByHost.set(host, currentOfHost);
      yield;
    }
    const edit = previous && editOf([...removed, ...added], previous.byHost, servicesByHost);
    const changedNamespaces = new Set([...removed, ...added].map(({ namespace }) => namespace));
    const servicesByNamespace = editedLists(previous?.byNamespace, changedNamespaces, edit, services);
    return new ServiceIndex(
      {
        services,
        byHost: servicesByHost,
        specialHosts: specialHosts,
        exceptions: exceptions.sets,
        byNamespace: servicesByNamespace,
      },
      previous,
      edit,
    );
  }

  visibleTo(namespace: string): readonly Service[] {
    return this.visibleLists.listOf(
      this.viewKeyOf(namespace),
      this.serviceSelection((view) => {
        return (service) => isExportedTo(service.exportTo, service.namespace, view);
      }),
    );
  }

  /** A host that several namespaces define resolves to the services of one. */
  servicesResolvedFor(namespace: string): readonly Service[] {
    return this.resolvedLists.listOf(
      this.viewKeyOf(namespace),
      this.serviceSelection((view) => {
        const namespaceByHost = new Map<string, string | undefined>();
        return (service) => {
          const { hostname } = service;
          if (!namespaceByHost.has(hostname))
            namespaceByHost.set(hostname, this.resolveHost(hostname, view)?.namespace);
          return (
            namespaceByHost.get(hostname) === service.namespace &&
            isExportedTo(service.exportTo, service.namespace, view)
          );
        };
      }),
    );
  }

  servicesDefinedIn(namespace: string): readonly Service[] {
    return this.byNamespace.get(namespace) ?? [];
  }

  servicesOfHost(hostname: string): readonly Service[] {
    return this.byHost.get(hostname) ?? [];
  }

  servicesNamed(hostname: string, namespace: string): readonly Service[] {
    return this.servicesOfHost(hostname).filter((service) => service.namespace === namespace);
  }

  resolveHost(hostname: string, clientNamespace: string): Service | undefined {
    let bestService: Service | undefined;
    for (const service of this.servicesOfHost(hostname)) {
      if (!isExportedTo(service.exportTo, service.namespace, clientNamespace)) continue;
      if (bestService === undefined || takesPrecedence(service, bestService, clientNamespace)) bestService = service;
    }
    return bestService;
  }

  /** Returns a namespace with an equivalent view: the same namespace, or the public view. */
  private viewKeyOf(namespace: string): string {
    return this.exceptions.has(namespace) ? namespace : publicViewNamespace;
  }

  private serviceSelection(choiceOf: (view: string) => (service: Service) => boolean): ServiceSelection {
    const { specialHosts, services } = this;
    return {
      select: (view) => {
        if (specialHosts.size === 0) return services;
        const isChosen = choiceOf(view);
        return services.filter((candidate) => !specialHosts.has(candidate.hostname) || isChosen(candidate));
      },
      selectFrom: (view, candidates) => (specialHosts.size === 0 ? undefined : candidates.filter(choiceOf(view))),
    };
  }
}

interface ServiceSelection {
  select(view: string): readonly Service[];
  selectFrom(view: string, candidates: readonly Service[]): readonly Service[] | undefined;
}

/** Services of changed hosts. All other services of a list are unchanged. */
interface ServiceEdit {
  readonly previous: ReadonlySet<Service>;
  /** The oldest service of each host is first. */
  readonly current: readonly Service[];
}

const maxEdited = 64;

function editOf(
  changedServices: readonly Service[],
  previousByHost: ReadonlyMap<string, readonly Service[]>,
  currentByHost: ReadonlyMap<string, readonly Service[]>,
): ServiceEdit | undefined {
  const hosts = [...new Set(changedServices.map(({ hostname }) => hostname))];
  const servicesOfHosts = (servicesByHost: ReadonlyMap<string, readonly Service[]>): Service[] =>
    hosts.flatMap((host) => servicesByHost.get(host) ?? []);
  const [previousServices, currentServices] = [servicesOfHosts(previousByHost), servicesOfHosts(currentByHost)];
  if (previousServices.length + currentServices.length > maxEdited) return undefined;
  return { previous: new Set(previousServices), current: currentServices };
}

/** Reuses lists of the previous index that contain the same services. */
class SharedLists {
  private readonly previous: ReadonlyMap<string, readonly Service[]>;
  private readonly edit: ServiceEdit | undefined;
  private readonly lists = new Map<string, readonly Service[]>();

  constructor(previous: SharedLists | undefined, edit: ServiceEdit | undefined) {
    this.previous = previous?.lists ?? new Map();
    this.edit = edit;
  }

  listOf(view: string, selection: ServiceSelection): readonly Service[] {
    let list = this.lists.get(view);
    if (list === undefined) {
      const previousList = this.previous.get(view);
      const current = (previousList && this.editedList(previousList, view, selection)) ?? selection.select(view);
      const similarLists = [
        previousList,
        view === publicViewNamespace ? undefined : this.listOf(publicViewNamespace, selection),
      ];
      list =
        similarLists.find(
          (similarList) => similarList !== undefined && (similarList === current || sameItems(similarList, current)),
        ) ?? current;
      this.lists.set(view, list);
    }
    return list;
  }

  /** The cost depends on the number of changed services, not on the list's length. */
  private editedList(
    list: readonly Service[],
    view: string,
    selection: ServiceSelection,
  ): readonly Service[] | undefined {
    if (this.edit === undefined) return undefined;
    const { previous, current } = this.edit;
    const chosenServices = selection.selectFrom(view, current);
    if (chosenServices === undefined) return undefined;
    const removedServices = new Set([...previous].filter((service) => list.includes(service)));
    return changedList(list, removedServices, chosenServices, compareServiceAge);
  }
}

class EditedSets {
  readonly sets: Map<string, ReadonlySet<string>>;
  private readonly copiedSets = new Set<ReadonlySet<string>>();

  constructor(previous: HostsByNamespace | undefined) {
    this.sets = new Map(previous);
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
    const cachedSet = this.sets.get(namespace);
    if (cachedSet !== undefined && this.copiedSets.has(cachedSet)) return cachedSet as Set<string>;
    const copy = new Set(cachedSet);
    this.copiedSets.add(copy);
    this.sets.set(namespace, copy);
    return copy;
  }
}

function editedLists(
  previousLists: ReadonlyMap<string, readonly Service[]> | undefined,
  changedNamespaces: ReadonlySet<string>,
  edit: ServiceEdit | undefined,
  services: readonly Service[],
): ReadonlyMap<string, readonly Service[]> {
  if (previousLists === undefined) return Map.groupBy(services, ({ namespace }) => namespace);
  if (changedNamespaces.size === 0) return previousLists;
  const lists = new Map(previousLists);
  const currentByNamespace = edit
    ? Map.groupBy(edit.current, ({ namespace }) => namespace)
    : Map.groupBy(
        services.filter(({ namespace }) => changedNamespaces.has(namespace)),
        ({ namespace }) => namespace,
      );
  for (const namespace of changedNamespaces) {
    const namespaceServices = currentByNamespace.get(namespace) ?? [];
    const list = edit
      ? changedList(previousLists.get(namespace) ?? [], edit.previous, namespaceServices, compareServiceAge)
      : namespaceServices;
    if (list.length === 0) lists.delete(namespace);
    else lists.set(namespace, list);
  }
  return lists;
}

function isNamespaceDependent(services: readonly Service[]): boolean {
  return services.some(({ namespace, exportTo }) => !isPublic(exportTo) || namespace !== services[0]!.namespace);
}

/** Namespaces in which a special host may resolve differently: those that define it, and those to which it is exported. */
function namesIn(services: readonly Service[]): ReadonlySet<string> {
  if (!isNamespaceDependent(services)) return new Set();
  return new Set(services.flatMap(({ namespace, exportTo }) => [namespace, ...exportTo]));
}

/** Precedence among services of one host: the client's namespace, then Kubernetes (whose names others must not occupy), then the older service. */
export function takesPrecedence(newerService: Service, olderService: Service, clientNamespace: string): boolean {
  if (olderService.namespace === clientNamespace || newerService.namespace === olderService.namespace) return false;
  if (newerService.namespace === clientNamespace) return true;
  return newerService.registry === 'Kubernetes' && olderService.registry !== 'Kubernetes';
}
