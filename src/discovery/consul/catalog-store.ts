/** Each response is a part of the catalog: the services of a node, or the instances of a service. */
import { isDeepStrictEqual } from 'node:util';
import type { CatalogReading } from '../../../machines/discovery/consul/catalog-change.ts';
import type { ConsulCheck } from '../../model/services/consul/catalog-json.ts';
import {
  type ConsulChecks,
  type ConsulHealth,
  type ConsulInstance,
  withChecks,
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

  get reading(): CatalogReading {
    return {
      ...{ nodes: this.#nodes.size, services: this.#partsOfHost.size, instances: this.#instances },
      ...{ restricted: this.#isRestricted, emptied: this.#emptiedCount },
    };
  }

  replace({ nodes, instancesByPart, checks, isRestricted }: CatalogContent): void {
    this.#isRestricted = isRestricted;
    this.#nodes = new Set(nodes);
    for (const key of [...this.#instancesByPart.keys()]) if (!instancesByPart.has(key)) this.#put(key, undefined);
    for (const [key, instances] of instancesByPart) this.#put(key, instances);
    this.setChecks(checks);
    this.#emptiedCount = 0;
  }

  setNodes(names: readonly string[]): boolean {
    const nodes = new Set(names);
    const isUnchanged = nodes.size === this.#nodes.size && names.every((name) => this.#nodes.has(name));
    this.#nodes = nodes;
    return !isUnchanged;
  }

  setPart(key: PartKey, instances: readonly ConsulInstance[] | undefined): boolean {
    return this.#put(key, instances);
  }

  addedTo(key: PartKey, instances: readonly ConsulInstance[]): number {
    const previousIds = new Set(this.#instancesByPart.get(key)?.map(idOf));
    return instances.filter((instance) => !previousIds.has(idOf(instance))).length;
  }

  setChecks(checks: readonly ConsulCheck[]): boolean {
    const previous = this.#checks;
    const now = new Map<string, Map<string, ConsulHealth>>();
    for (const { node, instance, status } of checks) {
      const nodeHealth = now.get(node) ?? new Map<string, ConsulHealth>();
      nodeHealth.set(instance, worstHealth([nodeHealth.get(instance), status]));
      now.set(node, nodeHealth);
    }
    this.#checks = now;
    const nodes = [...new Set([...previous.keys(), ...now.keys()])];
    const changedNodes = nodes.filter((node) => !isDeepStrictEqual(previous.get(node), now.get(node)));
    for (const node of changedNodes) {
      for (const key of this.#partsOfNode.get(node) ?? [])
        for (const { service } of this.#instancesByPart.get(key)!) this.#changedHosts.add(consulHostname(service));
    }
    return changedNodes.length > 0;
  }

  setRestricted(restricted: boolean): void {
    this.#isRestricted = this.#isRestricted || restricted;
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
        .map((instance) => withChecks(instance, this.#checks)),
    );
  }

  #put(key: PartKey, instances: readonly ConsulInstance[] | undefined): boolean {
    const previous = this.#instancesByPart.get(key);
    const now = instances?.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
    if (isDeepStrictEqual(now, previous)) return false;
    if ((previous?.length ?? 0) > 0 && (now?.length ?? 0) === 0) this.#emptiedCount++;
    for (const instance of previous ?? []) this.#forget(key, instance);
    if (now === undefined) this.#instancesByPart.delete(key);
    else this.#instancesByPart.set(key, now);
    for (const instance of now ?? []) this.#remember(key, instance);
    return true;
  }

  #forget(key: PartKey, { service, node }: ConsulInstance): void {
    this.#instances--;
    this.#changedHosts.add(consulHostname(service));
    dropFrom(this.#partsOfHost, consulHostname(service), key);
    dropFrom(this.#partsOfNode, node.name, key);
  }

  #remember(key: PartKey, { service, node }: ConsulInstance): void {
    this.#instances++;
    this.#changedHosts.add(consulHostname(service));
    addTo(this.#partsOfHost, consulHostname(service), key);
    addTo(this.#partsOfNode, node.name, key);
  }
}

function idOf({ node, id }: ConsulInstance): string {
  return `${node.name}/${id}`;
}

function addTo(index: Map<string, Set<PartKey>>, name: string, key: PartKey): void {
  const keys = index.get(name);
  if (keys === undefined) index.set(name, new Set([key]));
  else keys.add(key);
}

function dropFrom(index: Map<string, Set<PartKey>>, name: string, key: PartKey): void {
  const keys = index.get(name);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(name);
}
