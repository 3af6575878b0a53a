/** What each proxy of the mesh should have: push context → generators → encoded resources (spec/discovery.md §6.3–§6.7). */
import * as E from 'fp-ts/lib/Either.js';
import { concernedTypes, pushedTypeOf } from '../../model/concern.ts';
import { parseConfigKey } from '../../model/config.ts';
import { parseNode } from '../../model/parse-node.ts';
import type { Proxy, ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import { type Generator, generators } from '../../networking/index.ts';
import type {
  EncodedResource,
  NodeIdentity,
  NodeResources,
  ResourceChange,
  ResourceSet,
  ResourceSource,
} from '../ads/resource-source.ts';
import type { EncodedCache } from './encoded-cache.ts';

export interface MeshResourcesOptions {
  /** What proxies are served from now; absent until there is something to serve. */
  readonly context: () => PushContext | undefined;
  readonly cache: EncodedCache;
  /** alias → cluster id (`--clusterAliases`). */
  readonly clusterAliases?: Readonly<Record<string, string>>;
}

/** Serves the nodes of the mesh. A node is served from one context until a push brings it to the next. */
export class MeshResources implements ResourceSource {
  readonly #options: MeshResourcesOptions;
  readonly #nodes = new Set<MeshNode>();

  constructor(options: MeshResourcesOptions) {
    this.#options = options;
  }

  open(node: NodeIdentity): { readonly error: string } | { readonly resources: NodeResources } {
    const context = this.#options.context();
    if (context === undefined) return { error: 'server is not ready to serve discovery information' };
    const parsed = parseNode(node, this.#options.clusterAliases);
    if (E.isLeft(parsed)) return { error: parsed.left };
    const opened: MeshNode = new MeshNode(parsed.right, context, this.#options, () => this.#nodes.delete(opened));
    this.#nodes.add(opened);
    return { resources: opened };
  }

  /** The connected nodes of this id, one for each stream. */
  nodesOf(id: string): readonly MeshNode[] {
    return [...this.#nodes].filter(({ proxy }) => proxy.id === id);
  }

  get nodes(): Iterable<MeshNode> {
    return this.#nodes;
  }
}

/** A connected node, and the context that it is served from. */
export class MeshNode implements NodeResources {
  readonly proxy: Proxy;
  readonly #options: MeshResourcesOptions;
  readonly #closed: () => void;
  #context: PushContext;
  #view: ProxyView;

  constructor(proxy: Proxy, context: PushContext, options: MeshResourcesOptions, closed: () => void) {
    this.proxy = proxy;
    this.#context = context;
    this.#options = options;
    this.#closed = closed;
    this.#view = viewOf(proxy, context);
  }

  get view(): ProxyView {
    return this.#view;
  }

  get context(): PushContext {
    return this.#context;
  }

  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined {
    const generator = generators.get(typeUrl);
    if (generator === undefined) return undefined;
    const resources =
      generator.scope === 'all' ? this.#all(typeUrl, generator, names) : this.#named(typeUrl, generator, names);
    return { version: this.#context.version, resources };
  }

  concernedTypes(change: ResourceChange, watched: readonly string[]): readonly string[] {
    const before = this.#context;
    const now = this.#options.context() ?? before;
    if (now === before && !change.forced) return [];
    this.#context = now;
    this.#view = viewOf(this.proxy, now);
    const keys = [...change.configs].map(parseConfigKey);
    const types = concernedTypes({ forced: change.forced, keys }, this.proxy, now, before);
    return watched.filter((typeUrl) => {
      const type = pushedTypeOf(typeUrl);
      return type === undefined ? types.size > 0 : types.has(type);
    });
  }

  close(): void {
    this.#closed();
  }

  #all(
    typeUrl: string,
    generator: Extract<Generator, { scope: 'all' }>,
    names: readonly string[] | '*',
  ): ReadonlyMap<string, EncodedResource> {
    const all = this.#options.cache.all(this.#context, typeUrl, this.#view, () =>
      generator.build(this.#view, this.#context),
    );
    if (names === '*') return all;
    return new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!]] : [])));
  }

  #named(
    typeUrl: string,
    generator: Extract<Generator, { scope: 'named' }>,
    names: readonly string[] | '*',
  ): ReadonlyMap<string, EncodedResource> {
    // What is asked for by name is not listed: a proxy learns the names from other resources.
    if (names === '*') return new Map();
    return this.#options.cache.named(this.#context, typeUrl, this.#view, names, (missing) =>
      generator.build(this.#view, this.#context, missing),
    );
  }
}

function viewOf(proxy: Proxy, context: PushContext): ProxyView {
  return { ...proxy, serviceTargets: context.serviceTargetsOf(proxy) };
}
