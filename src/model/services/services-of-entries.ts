/** Services and endpoints of ServiceEntries and their selected workloads, updated incrementally. */

import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import { memoizeByPair } from '../collections/memoize-by-object.ts';
import { sameItems } from '../collections/same-items.ts';
import { sortInSteps } from '../collections/sorting.ts';
import { type Config, compareAge } from '../config/config.ts';
import type { ServiceEntry } from '../kinds/workloads/service-entry.ts';
import type { WorkloadEntry } from '../kinds/workloads/workload-entry.ts';
import { AddressAllocation, type AllocatedAddresses } from './auto-allocate.ts';
import type { ServiceName } from './endpoint-shards.ts';
import { LabelIndex, type SelectingItem, SelectorIndex } from './label-match.ts';
import { AddressBook, type LookupSubject, type ProxyLookup, type TargetRef } from './proxy-lookup.ts';
import { type ConfigObjectChange, type RegistryDelta, reuseServices, type ServiceDelta } from './registry-delta.ts';
import { reuseEndpoints, sameLabels } from './same-endpoint.ts';
import type { Endpoint, Service } from './service.ts';
import {
  allocationNames,
  endpointsOfEntry,
  type ServiceEntryOptions,
  servicesOfEntry,
  workloadOfEntry,
} from './service-entry-services.ts';
import { mayExport } from './visibility.ts';
import { compareWorkloadAge, sameWorkload, type Workload, type WorkloadEvent, workloadId } from './workload.ts';

interface EntryRecord {
  readonly entry: Config<ServiceEntry>;
  readonly services: readonly Service[];
  readonly servicesByHost: ReadonlyMap<string, readonly Service[]>;
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
}

interface Host {
  readonly hostname: string;
  readonly namespace: string;
  readonly entries: ReadonlySet<string>;
  readonly services: readonly Service[];
  readonly endpoints: readonly Endpoint[];
}

type Change = ConfigObjectChange<Config>;

const noEndpoints: readonly Endpoint[] = [];

export class ServiceEntryServices {
  readonly #options: ServiceEntryOptions;
  readonly #records = new Map<string, EntryRecord>();
  readonly #hosts = new Map<string, Host>();
  readonly #ownWorkloads = new Map<string, Workload>();
  readonly #workloads = new Map<string, LabelIndex<Workload>>();
  readonly #allocation = new AddressAllocation();
  #selectors = new SelectorIndex<Config<ServiceEntry>>();
  #addresses = new AddressBook();

  constructor(options: ServiceEntryOptions) {
    this.#options = options;
  }

  *services(): Iterable<Service> {
    for (const { services } of this.#hosts.values()) yield* services;
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#hosts.get(`${namespace}/${hostname}`)?.services ?? [];
  }

  get lookup(): ProxyLookup {
    return new ServiceEntryLookup(this.#addresses, this.#selectors);
  }

  /**
   * @param changes kinds other than ServiceEntry and WorkloadEntry are ignored
   * @param pods workloads of clusters
   */
  apply(changes: readonly Change[], pods: readonly WorkloadEvent[] = []): RegistryDelta {
    return runToEnd(this.applyInSteps(changes, pods));
  }

  /** Between the steps, look-ups may mix previous and new states. */
  *applyInSteps(changes: readonly Change[], pods: readonly WorkloadEvent[] = []): Steps<RegistryDelta> {
    const dirtyEntries = new Map<string, Config<ServiceEntry> | undefined>();
    let [hasAllocation, isAgeChanged] = [false, false];
    const selectors: ServiceName[] = [];
    for (const { key, current } of changes) {
      if (key.kind !== 'ServiceEntry') continue;
      const id = `${key.namespace}/${key.name}`;
      const entry = current as Config<ServiceEntry> | undefined;
      const previousEntry = this.#records.get(id)?.entry;
      const [oldNames, names] = [previousEntry, entry].map((serviceEntry) =>
        serviceEntry === undefined ? [] : allocationNames(serviceEntry),
      );
      const hasAgeChanged =
        names!.length > 0 &&
        previousEntry !== undefined &&
        entry !== undefined &&
        compareAge(previousEntry, entry) !== 0;
      isAgeChanged ||= hasAgeChanged;
      hasAllocation ||= hasAgeChanged || !sameItems(oldNames!, names!);
      dirtyEntries.set(id, entry);
      if (this.#select(id, previousEntry, entry)) {
        selectors.push(...entry!.spec.hosts.map((hostname) => ({ hostname, namespace: key.namespace })));
      }
      yield;
    }
    const workloadEvents = yield* this.#applyWorkloadsInSteps(changes);
    for (const event of [...workloadEvents, ...(this.#options.selectPods ? pods : [])]) {
      for (const { id, item } of this.#selectingEntries(event)) {
        if (!item.isWithoutEndpoints && !dirtyEntries.has(id)) dirtyEntries.set(id, item);
      }
      yield;
    }
    if (hasAllocation) yield* this.#allocateInSteps(dirtyEntries, isAgeChanged);
    const changedServices = new Map<string, { readonly hostname: string; readonly namespace: string }>();
    for (const [id, entry] of dirtyEntries) {
      this.#rebuildHost(id, entry, changedServices);
      yield;
    }
    const services: ServiceDelta[] = [];
    for (const name of changedServices.values()) {
      const delta = this.#joinedDelta(name);
      if (hasChanged(delta)) services.push(delta);
      yield;
    }
    this.#addresses = yield* this.#addresses.changeInSteps(
      services.map(({ previousEndpoints, endpoints, ...name }) => ({
        ...name,
        previous: previousEndpoints,
        current: endpoints,
      })),
    );
    return { services, workloads: workloadEvents, selectors };
  }

  #select(
    id: string,
    previousEntry: Config<ServiceEntry> | undefined,
    currentEntry: Config<ServiceEntry> | undefined,
  ): boolean {
    const previousLabels = previousEntry?.spec.workloadSelector?.labels;
    if (previousEntry && previousLabels)
      this.#selectors = this.#selectors.withoutItem(previousEntry.namespace, { id, selector: previousLabels });
    const selector = currentEntry?.spec.workloadSelector?.labels;
    if (currentEntry && selector)
      this.#selectors = this.#selectors.withItem(currentEntry.namespace, { id, selector, item: currentEntry });
    return (
      previousEntry !== undefined && currentEntry !== undefined && !sameLabels(previousLabels ?? {}, selector ?? {})
    );
  }

  *#applyWorkloadsInSteps(changes: readonly Change[]): Steps<WorkloadEvent[]> {
    const events: WorkloadEvent[] = [];
    for (const { key, current } of changes) {
      yield;
      if (key.kind !== 'WorkloadEntry') continue;
      const id = `${key.namespace}/${key.name}`;
      const workload = current && workloadOfEntry(current as Config<WorkloadEntry>, this.#options);
      const previous = this.#ownWorkloads.get(id);
      if (sameWorkload(previous, workload)) continue;
      if (workload === undefined) this.#ownWorkloads.delete(id);
      else this.#ownWorkloads.set(id, workload);
      events.push({ previous, current: workload });
    }
    return events;
  }

  /** Returns the ServiceEntries that selected the workload or select it now. */
  #selectingEntries({ previous, current }: WorkloadEvent): readonly SelectingItem<Config<ServiceEntry>>[] {
    const { namespace } = (current ?? previous)!;
    let index = this.#workloads.get(namespace);
    if (index === undefined) {
      index = new LabelIndex();
      this.#workloads.set(namespace, index);
    }
    if (previous) index.remove(workloadId(previous));
    if (current) index.put(workloadId(current), current);
    return [previous, current].flatMap((workload) =>
      workload === undefined ? [] : this.#selectors.itemsSelecting(namespace, workload.labels),
    );
  }

  /**
   * Also rebuilds other entries if their addresses change as a result.
   * @param isAgeChanged whether an entry's age changed, so that precedence depends on the order of all entries
   */
  *#allocateInSteps(dirtyEntries: Map<string, Config<ServiceEntry> | undefined>, isAgeChanged: boolean): Steps<void> {
    if (!isAgeChanged && this.#changesOwnAddressesOnly(dirtyEntries)) return;
    const entries = new Map([...this.#records].map(([id, { entry }]) => [id, entry]));
    for (const [id, entry] of dirtyEntries) {
      if (entry === undefined) entries.delete(id);
      else entries.set(id, entry);
    }
    const namedEntries: {
      readonly id: string;
      readonly entry: Config<ServiceEntry>;
      readonly names: readonly string[];
    }[] = [];
    for (const [id, entry] of entries) {
      const names = allocationNames(entry);
      if (names.length > 0) namedEntries.push({ id, entry, names });
      yield;
    }
    // Addresses for entries that cannot affect other namespaces are allocated last.
    const allocationRank = ({ entry }: { readonly entry: Config }): number =>
      mayExport(entry.namespace, this.#options) ? 0 : 1;
    const sortedEntries = yield* sortInSteps(
      namedEntries,
      (a, b) => allocationRank(a) - allocationRank(b) || compareAge(a.entry, b.entry),
    );
    const previousAddresses = this.#allocation.addresses;
    yield* this.#allocation.allocateInSteps(sortedEntries.flatMap(({ names }) => names));
    for (const { id, entry, names } of sortedEntries) {
      yield;
      const isAddressChanged = names.some(
        (name) => this.#allocation.get(name)?.ipv4 !== previousAddresses.get(name)?.ipv4,
      );
      if (isAddressChanged) dirtyEntries.set(id, entry);
    }
  }

  /** Changes nothing and returns false if addresses of other entries could change. */
  #changesOwnAddressesOnly(dirtyEntries: ReadonlyMap<string, Config<ServiceEntry> | undefined>): boolean {
    const [removedHosts, addedHosts] = [new Set<string>(), new Set<string>()];
    for (const [id, entry] of dirtyEntries) {
      const previousEntry = this.#records.get(id)?.entry;
      for (const name of previousEntry ? allocationNames(previousEntry) : []) removedHosts.add(name);
      for (const name of entry ? allocationNames(entry) : []) {
        if (addedHosts.has(name)) return false;
        addedHosts.add(name);
      }
    }
    return this.#allocation.change(removedHosts, addedHosts);
  }

  #rebuildHost(
    id: string,
    entry: Config<ServiceEntry> | undefined,
    changedServices: Map<string, { readonly hostname: string; readonly namespace: string }>,
  ): void {
    const previous = this.#records.get(id);
    const namespace = (entry ?? previous?.entry)?.namespace ?? '';
    for (const hostname of new Set([...(previous?.entry.spec.hosts ?? []), ...(entry?.spec.hosts ?? [])])) {
      const key = `${namespace}/${hostname}`;
      changedServices.set(key, { hostname, namespace });
      const host = this.#hosts.get(key) ?? { hostname, namespace, entries: new Set(), services: [], endpoints: [] };
      const entries = new Set(host.entries);
      if (entry?.spec.hosts.includes(hostname)) entries.add(id);
      else entries.delete(id);
      this.#hosts.set(key, { ...host, entries });
    }
    if (entry === undefined) this.#records.delete(id);
    else this.#records.set(id, this.#convert(entry, previous));
  }

  #convert(entry: Config<ServiceEntry>, previous: EntryRecord | undefined): EntryRecord {
    const allocatedAddressesOf = (name: string): AllocatedAddresses | undefined => this.#allocation.get(name);
    const services = servicesOfEntry(entry, this.#options, allocatedAddressesOf);
    const selector = entry.spec.workloadSelector?.labels;
    const isSelecting = selector !== undefined && !entry.isWithoutEndpoints;
    const selectedWorkloads = isSelecting ? (this.#workloads.get(entry.namespace)?.selectedBy(selector) ?? []) : [];
    const endpoints = endpointsOfEntry(entry, selectedWorkloads.toSorted(compareWorkloadAge), this.#options);
    // Hosts of an entry usually share one endpoint list. After the reuse, they still share one.
    const reuseList = memoizeByPair((list: readonly Endpoint[], previousList: readonly Endpoint[]) =>
      reuseEndpoints(list, previousList),
    );
    const reusedLists = [...endpoints].map(
      ([host, list]) => [host, reuseList(list, previous?.endpoints.get(host) ?? noEndpoints)] as const,
    );
    const reusedServices = reuseServices(services, previous?.services ?? []);
    const servicesByHost = Map.groupBy(reusedServices, ({ hostname }) => hostname);
    return { entry, services: reusedServices, servicesByHost, endpoints: new Map(reusedLists) };
  }

  #joinedDelta({ hostname, namespace }: { readonly hostname: string; readonly namespace: string }): ServiceDelta {
    const key = `${namespace}/${hostname}`;
    const host = this.#hosts.get(key)!;
    const records = [...host.entries].map((id) => this.#records.get(id)!).sort((a, b) => compareAge(a.entry, b.entry));
    const services = reuseServices(
      records.flatMap((entryRecord) => entryRecord.servicesByHost.get(hostname) ?? []),
      host.services,
    );
    const lists = records.map((entryRecord) => entryRecord.endpoints.get(hostname) ?? []);
    const endpoints = reuseEndpoints(lists.length === 1 ? lists[0]! : lists.flat(), host.endpoints);
    if (host.entries.size === 0) this.#hosts.delete(key);
    else this.#hosts.set(key, { ...host, services, endpoints });
    const { services: previous, endpoints: previousEndpoints } = host;
    return { hostname, namespace, previous, current: services, previousEndpoints, endpoints };
  }
}

function hasChanged({ previous, current, previousEndpoints, endpoints }: ServiceDelta): boolean {
  return previous !== current || previousEndpoints !== endpoints;
}

class ServiceEntryLookup implements ProxyLookup {
  readonly #addresses: AddressBook;
  readonly #selectors: SelectorIndex<Config<ServiceEntry>>;

  constructor(addresses: AddressBook, selectors: SelectorIndex<Config<ServiceEntry>>) {
    this.#addresses = addresses;
    this.#selectors = selectors;
  }

  targetsOf(proxy: LookupSubject): readonly TargetRef[] {
    const targetsByAddress = this.#addresses.targetsAt(proxy.configNamespace, identifyingAddresses(proxy));
    const selectingEntries = this.#selectors.itemsSelecting(proxy.configNamespace, proxy.labels);
    if (selectingEntries.length === 0) return targetsByAddress;
    // A selector without labels would match every proxy of the namespace.
    const selectedEntries = selectingEntries
      .filter(({ selector }) => Object.keys(selector).length > 0)
      .map(({ item }) => item);
    return [...targetsByAddress, ...selectedEntries.sort(compareAge).flatMap(targetsOfEntry)];
  }

  workloadOf(): undefined {
    return undefined;
  }
}

function identifyingAddresses({ type, ipAddresses }: LookupSubject): readonly string[] {
  return type === 'router' ? ipAddresses.filter((address) => !isLoopback(address)) : ipAddresses;
}

function targetsOfEntry({ spec }: Config<ServiceEntry>): TargetRef[] {
  return spec.hosts.flatMap((hostname) =>
    spec.ports.map(({ name, number, targetPort }) => ({ hostname, portName: name, targetPort: targetPort ?? number })),
  );
}
