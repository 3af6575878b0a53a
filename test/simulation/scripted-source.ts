/** A resource source that a test fills manually; versions count its changes. */
import { clusterType, listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import type {
  ClusterReadiness,
  EncodedResource,
  NodeIdentity,
  NodeResources,
  ResourceChange,
  ResourceReferences,
  ResourceSet,
  ResourceSource,
} from '../../src/discovery/xds/resource-source.ts';
import { encodeValue } from '../../src/discovery/xds/responses/encoding.ts';
import { memoizeByObject, memoizeByPair } from '../../src/model/collections/memoize-by-object.ts';

/** When clients can use clusters (default: with their endpoints). */
const usableWithAssignment = (name: string): ClusterReadiness => ({
  usableAfter: 'assignment',
  assignment: name,
  secrets: new Set(),
});

/** Suffix of a limited version. */
export const limitedMark = '+limit';

const limitedOf = memoizeByObject(({ name, version }: EncodedResource) =>
  encodeValue(clusterType, Buffer.from(`${name}=${version}${limitedMark}`), name, {
    version: `${version}${limitedMark}`,
  }),
);

/** Streams that subscribe to the same names share one map, as with a mesh source. */
const selectResources = memoizeByPair(
  (all: ReadonlyMap<string, EncodedResource>, names: readonly string[]): ReadonlyMap<string, EncodedResource> =>
    new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!]] : []))),
);

export class ScriptedSource implements ResourceSource {
  /** Usability of clusters by name; for one version, by content `name=version`. */
  readonly usability = new Map<string, ClusterReadiness>();
  readonly #clusters = new WeakMap<EncodedResource, readonly string[]>();
  readonly #routes = new WeakMap<EncodedResource, readonly string[]>();
  readonly #resourcesWithoutHosts = new WeakSet<EncodedResource>();
  readonly references: ResourceReferences = {
    names: (resource, cluster) => this.#clusters.get(resource)?.includes(cluster) === true,
    referencedNamesAmong: (resource, clusters) =>
      [...clusters].filter((name) => this.#clusters.get(resource)?.includes(name) === true),
    usabilityOf: (cluster) => this.#usabilityOf(cluster),
    fetchesEndpoints: (cluster) => this.#usabilityOf(cluster).usableAfter === 'assignment',
    isEmptyAssignment: ({ name, version }) => this.emptyAssignments.has(`${name}=${version}`),
    secretsOf: ({ name, version }) =>
      (this.usability.get(`${name}=${version}`) ?? this.usability.get(name))?.secrets ?? new Set(),
    routeConfigurationsOf: (listener) => new Set(this.#routes.get(listener)),
    hasHosts: (configuration) => !this.#resourcesWithoutHosts.has(configuration),
    withFetchLimit: (cluster) => limitedOf(cluster),
  };
  readonly types = new Map<string, Map<string, EncodedResource>>();
  /** Contents of assignments without endpoints. */
  readonly emptyAssignments = new Set<string>();
  version = 0;
  /** Nodes that are open. */
  readonly nodes: NodeIdentity[] = [];
  /** The types that a node watched, for each change of which it was notified. */
  readonly notifiedTypes: (readonly string[])[] = [];
  /** Why nodes are rejected. */
  nodeRejection: string | undefined;
  /** The error that `get` throws. */
  getError: Error | undefined;

  /** Adds a resource; its content is `name=<version>`, padded with blanks to the size. */
  set(typeUrl: string, name: string, size = 0): void {
    this.version++;
    const value = Buffer.from(`${name}=${this.version}`.padEnd(size));
    const resources = new Map(this.types.get(typeUrl));
    this.types.set(typeUrl, resources.set(name, encodeValue(typeUrl, value, name, { version: `${this.version}` })));
  }

  /** Restores a removed resource without reporting a change. */
  restore(typeUrl: string, resource: EncodedResource): void {
    this.version++;
    this.types.set(typeUrl, new Map(this.types.get(typeUrl)).set(resource.name, resource));
  }

  /** `name=version` of all resources of a type, by name. */
  contentsOf(typeUrl: string): Map<string, string> {
    return new Map([...(this.types.get(typeUrl) ?? [])].map(([name, { version }]) => [name, `${name}=${version}`]));
  }

  /** Adds a listener or route that names clusters. */
  setNaming(typeUrl: string, name: string, ...clusters: string[]): void {
    this.set(typeUrl, name);
    this.#clusters.set(this.types.get(typeUrl)!.get(name)!, clusters);
  }

  /** Adds a listener that fetches route configurations. */
  setFetching(name: string, ...routes: string[]): void {
    this.set(listenerType, name);
    this.#routes.set(this.types.get(listenerType)!.get(name)!, routes);
  }

  /** Adds a route configuration without hosts. */
  setWithoutHosts(name: string): void {
    this.set(routeType, name);
    this.#resourcesWithoutHosts.add(this.types.get(routeType)!.get(name)!);
  }

  #usabilityOf({ name, version }: EncodedResource): ClusterReadiness {
    return this.usability.get(`${name}=${version}`) ?? this.usability.get(name) ?? usableWithAssignment(name);
  }

  remove(typeUrl: string, name: string): void {
    this.version++;
    const resources = new Map(this.types.get(typeUrl));
    resources.delete(name);
    this.types.set(typeUrl, resources);
  }

  change(...typeUrls: string[]): ResourceChange {
    return { version: `${this.version}`, forced: typeUrls.length === 0, configs: new Set(typeUrls) };
  }

  openNode(node: NodeIdentity): { error: string } | { resources: NodeResources } {
    if (this.nodeRejection !== undefined) return { error: this.nodeRejection };
    this.nodes.push(node);
    return {
      resources: {
        get: (typeUrl, names) => this.#get(typeUrl, names),
        typesToPush: (change, watched) => {
          this.notifiedTypes.push(watched);
          return change.forced ? watched : watched.filter((typeUrl) => change.configs.has(typeUrl));
        },
        close: () => void this.nodes.splice(this.nodes.indexOf(node), 1),
      },
    };
  }

  #get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined {
    if (this.getError !== undefined) throw this.getError;
    const all = this.types.get(typeUrl);
    if (all === undefined) return undefined;
    const version = `v${this.version}`;
    if (names === '*') return { version, resources: all };
    return { version, resources: selectResources(all, names) };
  }
}
