/** Each response is a part of the catalog: the services of a node, or the instances of a service. */
import { isDeepStrictEqual } from 'node:util';
import type { CatalogReading } from '../../../machines/discovery/consul/catalog-change.ts';
import type { ConsulCheck } from '../../model/services/consul/catalog-json.ts';
import {
  type ConsulChecks,
  type ConsulHealth,
  type ConsulInstance,
  withHealthChecks,
  worstHealth,
} from '../../model/services/consul/consul-instance.ts';
import { consulHostname } from '../../model/services/consul/consul-service.ts';

export type PartKey = string;

export interface CatalogContent {
  readonly nodes: readonly string[];
  readonly instancesByPart: ReadonlyMap<PartKey, readonly ConsulInstance[]>;
  readonly checks: readonly ConsulCheck[];
  readonly isRestricted: boolean;
}

/** Empty if the host was removed. */
export interface AppliedHost {
  readonly hostname: string;
  readonly instances: readonly ConsulInstance[];
}

export class CatalogStore {
  #nodes: ReadonlySet<string> = new Set();
  #instancesByPart = new Map<PartKey, readonly ConsulInstance[]>();
  #partsOfHost = new Map<string, Set<PartKey>>();
  #partsOfNode = new Map<string, Set<PartKey>>();
  #checks: ConsulChecks = new Map();
  #instances = 0;
  #isRestricted = false;
  #emptiedCount = 0;
  readonly #changedHosts = new Set<string>();
  readonly #appliedInstances = new Map<string, readonly ConsulInstance[]>();
  #isApplied = false;

  get isApplied(): boolean {
    return this.#isApplied;
  }

  get catalogReading(): CatalogReading {
    return {
      ...{ nodes: this.#nodes.size, services: this.#partsOfHost.size, instances: this.#instances },
      ...{ restricted: this.#isRestricted, emptied: this.#emptiedCount },
    };
  }

  replace({ nodes, instancesByPart, checks, isRestricted }: CatalogContent): void {
    this.#isRestricted = isRestricted;
    this.#nodes = new Set(nodes);
    for (const key of [...this.#instancesByPart.keys()])
      if (!instancesByPart.has(key)) this.#putInstances(key, undefined);
    for (const [key, instances] of instancesByPart) this.#putInstances(key, instances);
    this.replaceChecks(checks);
    this.#emptiedCount = 0;
  }

  setNodes(names: readonly string[]): boolean {
    const nodes = new Set(names);
    const isUnchanged = nodes.size === this.#nodes.size && names.every((name) => this.#nodes.has(name));
    this.#nodes = nodes;
    return !isUnchanged;
  }

  setPart(key: PartKey, instances: readonly ConsulInstance[] | undefined): boolean {
    return this.#putInstances(key, instances);
  }

  addedTo(key: PartKey, instances: readonly ConsulInstance[]): number {
    const previousIds = new Set(this.#instancesByPart.get(key)?.map(idOf));
    return instances.filter((instance) => !previousIds.has(idOf(instance))).length;
  }

  replaceChecks(checks: readonly ConsulCheck[]): boolean {
    const previous = this.#checks;
    const currentChecks = new Map<string, Map<string, ConsulHealth>>();
    for (const { node, instance, status } of checks) {
      const nodeHealth = currentChecks.get(node) ?? new Map<string, ConsulHealth>();
      nodeHealth.set(instance, worstHealth([nodeHealth.get(instance), status]));
      currentChecks.set(node, nodeHealth);
    }
    this.#checks = currentChecks;
    const nodes = [...new Set([...previous.keys(), ...currentChecks.keys()])];
    const changedNodes = nodes.filter((node) => !isDeepStrictEqual(previous.get(node), currentChecks.get(node)));
    for (const node of changedNodes) {
      for (const key of this.#partsOfNode.get(node) ?? [])
        for (const { service } of this.#instancesByPart.get(key)!) this.#changedHosts.add(consulHostname(service));
    }
    return changedNodes.length > 0;
  }

  setRestricted(isRestricted: boolean): void {
    this.#isRestricted = this.#isRestricted || isRestricted;
  }

  /** @returns changed hosts */
  apply(): readonly AppliedHost[] {
    this.#isApplied = true;
    this.#emptiedCount = 0;
    const hosts = [...this.#changedHosts].map((hostname) => ({ hostname, instances: this.#instancesOf(hostname) }));
    this.#changedHosts.clear();
    for (const { hostname, instances } of hosts) {
      if (instances.length === 0) this.#appliedInstances.delete(hostname);
      else this.#appliedInstances.set(hostname, instances);
    }
    return hosts;
  }

  *appliedHosts(): Iterable<AppliedHost> {
    for (const [hostname, instances] of this.#appliedInstances) yield { hostname, instances };
  }

  #instancesOf(hostname: string): readonly ConsulInstance[] {
    return [...(this.#partsOfHost.get(hostname) ?? [])].flatMap((key) =>
      this.#instancesByPart
        .get(key)!
        .filter(({ service }) => consulHostname(service) === hostname)
        .map((instance) => withHealthChecks(instance, this.#checks)),
    );
  }

  #putInstances(key: PartKey, instances: readonly ConsulInstance[] | undefined): boolean {
    const previous = this.#instancesByPart.get(key);
    const sortedInstances = instances?.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
    if (isDeepStrictEqual(sortedInstances, previous)) return false;
    if ((previous?.length ?? 0) > 0 && (sortedInstances?.length ?? 0) === 0) this.#emptiedCount++;
    for (const instance of previous ?? []) this.#removeFromIndexes(key, instance);
    if (sortedInstances === undefined) this.#instancesByPart.delete(key);
    else this.#instancesByPart.set(key, sortedInstances);
    for (const instance of sortedInstances ?? []) this.#addToIndexes(key, instance);
    return true;
  }

  #removeFromIndexes(key: PartKey, { service, node }: ConsulInstance): void {
    this.#instances--;
    this.#changedHosts.add(consulHostname(service));
    removeFromIndex(this.#partsOfHost, consulHostname(service), key);
    removeFromIndex(this.#partsOfNode, node.name, key);
  }

  #addToIndexes(key: PartKey, { service, node }: ConsulInstance): void {
    this.#instances++;
    this.#changedHosts.add(consulHostname(service));
    addToIndex(this.#partsOfHost, consulHostname(service), key);
    addToIndex(this.#partsOfNode, node.name, key);
  }
}

function idOf({ node, id }: ConsulInstance): string {
  return `${node.name}/${id}`;
}

function addToIndex(index: Map<string, Set<PartKey>>, name: string, key: PartKey): void {
  const keys = index.get(name);
  if (keys === undefined) index.set(name, new Set([key]));
  else keys.add(key);
}

function removeFromIndex(index: Map<string, Set<PartKey>>, name: string, key: PartKey): void {
  const keys = index.get(name);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(name);
}
