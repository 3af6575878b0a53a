/**
 * Encoded resources, made once and shared by every proxy that gets the same (spec/discovery.md §6.7). A cache belongs to
 * a context: what is made from another one is made anew, except what is known not to have changed.
 */
import { hash } from 'node:crypto';
import { configKeyText } from '../../model/config.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import { ipFamilyOf } from '../../networking/address.ts';
import { endpointType, type Resource, routeType } from '../../networking/index.ts';
import { addressKey } from '../../networking/proxy-shape.ts';
import type { EncodedResource } from '../ads/resource-source.ts';
import type { PublishedContext } from './mesh-state.ts';

export type Encode = (resource: Resource) => EncodedResource;

export interface EncodedCacheOptions {
  readonly encode: Encode;
  /** Most resources kept for one context, and most kept to be recognised (PILOT_XDS_CACHE_SIZE). 0: nothing is kept. */
  readonly maxEntries: number;
}

interface Entry {
  readonly encoded: EncodedResource;
  readonly dependsOn: ReadonlySet<string>;
}

/** What was made from one context. */
interface ContextEntries {
  /** Whole types, by type and view. */
  readonly all: Map<string, ReadonlyMap<string, EncodedResource>>;
  /** Single resources, by type, view and name. */
  readonly named: Map<string, Entry>;
  /** Lists of those, by type, view and all names: proxies that ask for the same share the list too. */
  readonly lists: Map<string, ReadonlyMap<string, EncodedResource>>;
  size: number;
}

export interface CacheCounts {
  hits: number;
  misses: number;
  evictions: number;
}

export class EncodedCache {
  readonly counts: CacheCounts = { hits: 0, misses: 0, evictions: 0 };
  readonly #options: EncodedCacheOptions;
  readonly #entries = new WeakMap<PushContext, ContextEntries>();
  /** Generators hand the same object to proxies that share it. */
  readonly #encoded = new WeakMap<Resource, EncodedResource>();
  /** By type, name and version: resources that are equal again keep their bytes. Least recently used first. */
  readonly #known = new Map<string, EncodedResource>();
  readonly #viewKeys = new WeakMap<ProxyView, Map<string, string>>();

  constructor(options: EncodedCacheOptions) {
    this.#options = options;
  }

  /** Resources kept in order to be recognised. */
  get size(): number {
    return this.#known.size;
  }

  /** All resources of a type for a view, by name, in the order in which they were built. */
  all(
    context: PushContext,
    typeUrl: string,
    view: ProxyView,
    build: () => readonly Resource[],
  ): ReadonlyMap<string, EncodedResource> {
    const entries = this.#of(context);
    const key = `${typeUrl} ${this.#viewKey(view, context, typeUrl)}`;
    const kept = entries.all.get(key);
    if (kept !== undefined) {
      this.counts.hits++;
      return kept;
    }
    this.counts.misses++;
    const made = new Map(build().map((resource) => [resource.name, this.#encode(typeUrl, resource)]));
    if (entries.size + made.size <= this.#options.maxEntries) {
      entries.size += made.size;
      entries.all.set(key, made);
    }
    return made;
  }

  /** The named resources of a type for a view; only those are built that are not known yet. */
  named(
    context: PushContext,
    typeUrl: string,
    view: ProxyView,
    names: readonly string[],
    build: (names: readonly string[]) => readonly Resource[],
  ): ReadonlyMap<string, EncodedResource> {
    const entries = this.#of(context);
    const prefix = `${typeUrl} ${this.#viewKey(view, context, typeUrl)} `;
    const listKey = prefix + hash('sha1', names.join('\n'), 'base64url');
    const kept = entries.lists.get(listKey);
    if (kept !== undefined) {
      this.counts.hits += names.length;
      return kept;
    }
    const list = this.#list(entries, typeUrl, prefix, names, build);
    if (entries.size + list.size <= this.#options.maxEntries) {
      entries.size += list.size;
      entries.lists.set(listKey, list);
    }
    return list;
  }

  #list(
    entries: ContextEntries,
    typeUrl: string,
    prefix: string,
    names: readonly string[],
    build: (names: readonly string[]) => readonly Resource[],
  ): ReadonlyMap<string, EncodedResource> {
    const missing = names.filter((name) => !entries.named.has(prefix + name));
    this.counts.hits += names.length - missing.length;
    this.counts.misses += missing.length;
    const built = new Map((missing.length === 0 ? [] : build(missing)).map((resource) => [resource.name, resource]));
    const result = new Map<string, EncodedResource>();
    for (const name of names) {
      const resource = built.get(name);
      const entry = resource === undefined ? entries.named.get(prefix + name) : this.#entry(typeUrl, resource);
      if (entry === undefined) continue;
      result.set(name, entry.encoded);
      if (resource !== undefined && entries.size < this.#options.maxEntries) {
        entries.size++;
        entries.named.set(prefix + name, entry);
      }
    }
    return result;
  }

  /**
   * Takes over to a new context what it cannot have changed: when endpoints alone did, the assignments of other services
   * (§6.5, EDS). Any other change may bring a service into being that a name had no meaning for, so nothing is kept then.
   */
  carryOver({ context, previous, forced, changed }: PublishedContext): void {
    const old = previous === undefined ? undefined : this.#entries.get(previous);
    if (old === undefined || forced || ![...changed].every((key) => key.startsWith('Endpoints/'))) return;
    const entries = this.#of(context);
    for (const [key, entry] of old.named) {
      if (!key.startsWith(endpointType) || [...entry.dependsOn].some((origin) => changed.has(origin))) continue;
      entries.named.set(key, entry);
      entries.size++;
    }
  }

  /** Forgets everything (`/debug/cachez?clear=true`); what was made for the present context is made again. */
  clear(context: PushContext | undefined): void {
    this.#known.clear();
    if (context !== undefined) this.#entries.delete(context);
  }

  #of(context: PushContext): ContextEntries {
    let entries = this.#entries.get(context);
    if (entries === undefined) {
      entries = { all: new Map(), named: new Map(), lists: new Map(), size: 0 };
      this.#entries.set(context, entries);
    }
    return entries;
  }

  #entry(typeUrl: string, resource: Resource): Entry {
    return {
      encoded: this.#encode(typeUrl, resource),
      dependsOn: new Set(resource.dependsOn.map(configKeyText)),
    };
  }

  #encode(typeUrl: string, resource: Resource): EncodedResource {
    if (this.#options.maxEntries === 0) return this.#options.encode(resource);
    const same = this.#encoded.get(resource);
    if (same !== undefined) return same;
    const encoded = this.#recognised(typeUrl, this.#options.encode(resource));
    this.#encoded.set(resource, encoded);
    return encoded;
  }

  /** What was encoded before with the same content, so that equal resources of several contexts share their bytes. */
  #recognised(typeUrl: string, encoded: EncodedResource): EncodedResource {
    const key = `${typeUrl} ${encoded.name} ${encoded.version}`;
    const known = this.#known.get(key) ?? encoded;
    this.#known.delete(key);
    this.#known.set(key, known);
    if (this.#known.size > this.#options.maxEntries) {
      this.counts.evictions++;
      this.#known.delete(this.#known.keys().next().value!);
    }
    return known;
  }

  #viewKey(view: ProxyView, context: PushContext, typeUrl: string): string {
    // Clusters and listeners may name the proxy's own addresses; routes and endpoints know no more than their family.
    const byFamily = typeUrl === endpointType || typeUrl === routeType;
    const addresses = byFamily ? ipFamilyOf(view.ipAddresses) : addressKey(view, context);
    let keys = this.#viewKeys.get(view);
    if (keys === undefined) {
      keys = new Map();
      this.#viewKeys.set(view, keys);
    }
    const known = keys.get(addresses);
    if (known !== undefined) return known;
    const key = viewKey(view, addresses);
    keys.set(addresses, key);
    return key;
  }
}

/** Metadata that is another for every instance of a workload, and that no generator reads. */
const ofInstance: ReadonlySet<string> = new Set(['INSTANCE_IPS', 'NAME', 'POD_NAME', 'POD_UID', 'PROXY_CONFIG_HASH']);

/** Equal for views whose resources are equal, given one context. */
function viewKey(view: ProxyView, addresses: string): string {
  const {
    id: _id,
    name: _name,
    cluster: _cluster,
    ipAddresses: _ipAddresses,
    serviceTargets,
    metadata,
    ...shape
  } = view;
  const text = JSON.stringify([
    shape,
    addresses,
    Object.entries(metadata).filter(([key]) => !ofInstance.has(key)),
    serviceTargets.map(({ service, port, targetPort }) => [
      service.namespace,
      service.hostname,
      port.number,
      targetPort,
    ]),
  ]);
  // Part of the key of every entry: a text of its own length would be most of the cache.
  return hash('sha256', text, 'base64url');
}
