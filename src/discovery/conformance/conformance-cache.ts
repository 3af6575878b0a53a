/** Contains resources from an adapter, a version per type, and a state per node ID. */

import type {
  EncodedResource,
  NodeIdentity,
  NodeResources,
  ResourceChange,
  ResourceSet,
  ResourceSource,
} from '../xds/resource-source.ts';
import { encodeValue } from '../xds/responses/encoding.ts';
import { conformanceKinds } from './conformance-kinds.ts';

export interface BareResource {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface ResourceAddress {
  readonly node: string;
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
}

interface CacheEntry {
  readonly value: Uint8Array;
  readonly encoded: EncodedResource;
}

interface TypeState {
  readonly version: string;
  readonly entries: ReadonlyMap<string, CacheEntry>;
}

/** Compared by identity, so that a delayed update does not affect a newer state. */
type NodeState = Map<string, TypeState>;

const noEntries: ReadonlyMap<string, CacheEntry> = new Map();

export class ConformanceCache implements ResourceSource {
  readonly #nodes = new Map<string, NodeState>();
  readonly #onChanged: (change: ResourceChange) => void;
  /** Makes contents unique, so that a resource that is added again counts as changed, even with equal bytes. */
  #revision = 0;

  constructor(onChanged: (change: ResourceChange) => void) {
    this.#onChanged = onChanged;
  }

  /** @throws Error for an unknown type or an invalid resource. The state is then unchanged. */
  setState(node: string, version: string, resources: readonly BareResource[]): void {
    const state: NodeState = new Map();
    for (const [typeUrl, previousTypes] of this.#nodes.get(node) ?? [])
      state.set(typeUrl, { ...previousTypes, entries: noEntries });
    const entriesByType = new Map<string, Map<string, CacheEntry>>();
    for (const { typeUrl, value } of resources) {
      const name = kindOf(typeUrl).nameOf(value);
      const entries = entriesByType.get(typeUrl) ?? new Map<string, CacheEntry>();
      entriesByType.set(typeUrl, entries.set(name, this.#entry(typeUrl, name, value)));
    }
    for (const [typeUrl, entries] of entriesByType) state.set(typeUrl, { version, entries });
    this.#nodes.set(node, state);
    this.#notify(node, [...state.keys()]);
  }

  /** Nothing is pushed, because remaining clients belong to a finished scenario. */
  clearState(node: string): void {
    this.#nodes.delete(node);
  }

  addResource({ node, typeUrl, name, version }: ResourceAddress): void {
    const value = kindOf(typeUrl).buildMinimalResource(name);
    const state = this.#nodes.get(node) ?? new Map<string, TypeState>();
    this.#nodes.set(node, state);
    const previousTypes = state.get(typeUrl);
    const entries = new Map(previousTypes?.entries).set(name, this.#entry(typeUrl, name, value));
    this.#setType(node, state, typeUrl, { version: version || (previousTypes?.version ?? ''), entries });
  }

  /**
   * An empty version keeps the version of the type.
   *
   * @returns whether the resource existed
   */
  removeResource({ node, typeUrl, name, version }: ResourceAddress): boolean {
    const state = this.#nodes.get(node);
    const previousTypes = state?.get(typeUrl);
    if (state === undefined || previousTypes === undefined || !previousTypes.entries.has(name)) return false;
    const entries = new Map(previousTypes.entries);
    entries.delete(name);
    this.#setType(node, state, typeUrl, { version: version || previousTypes.version, entries });
    return true;
  }

  /** The returned function applies the change. It returns `false` if the node's state was replaced or removed. */
  updateResource({ node, typeUrl, name, version }: ResourceAddress): () => boolean {
    const state = this.#nodes.get(node);
    return () => {
      const previousTypes = state?.get(typeUrl);
      const entry = previousTypes?.entries.get(name);
      if (state === undefined || previousTypes === undefined || entry === undefined) return false;
      if (this.#nodes.get(node) !== state) return false;
      const value = kindOf(typeUrl).buildChangedResource(entry.value, this.#revision + 1);
      const entries = new Map(previousTypes.entries).set(name, this.#entry(typeUrl, name, value));
      this.#setType(node, state, typeUrl, { version: version || previousTypes.version, entries });
      return true;
    };
  }

  /** Serves all nodes, including those without a state. */
  openNode(node: NodeIdentity): { readonly resources: NodeResources } {
    return {
      resources: {
        get: (typeUrl, names) => this.#get(node.id, typeUrl, names),
        typesToPush: (change, watchedTypes) =>
          watchedTypes.filter((typeUrl) => change.forced || change.configs.has(changeKey(node.id, typeUrl))),
        close: () => {},
      },
    };
  }

  #get(node: string, typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined {
    const type = this.#nodes.get(node)?.get(typeUrl);
    if (type === undefined) return undefined;
    const resources = new Map<string, EncodedResource>();
    for (const name of names === '*' ? type.entries.keys() : names) {
      const entry = type.entries.get(name);
      if (entry !== undefined) resources.set(name, entry.encoded);
    }
    return { version: type.version, resources };
  }

  #entry(typeUrl: string, name: string, value: Uint8Array): CacheEntry {
    return { value, encoded: encodeValue(typeUrl, value, name, { version: `${++this.#revision}` }) };
  }

  #setType(node: string, state: NodeState, typeUrl: string, type: TypeState): void {
    state.set(typeUrl, type);
    this.#notify(node, [typeUrl]);
  }

  #notify(node: string, typeUrls: readonly string[]): void {
    const configs = new Set(typeUrls.map((typeUrl) => changeKey(node, typeUrl)));
    this.#onChanged({ version: `${this.#revision}`, forced: false, configs });
  }
}

function kindOf(typeUrl: string) {
  const kind = conformanceKinds.get(typeUrl);
  if (kind === undefined) throw new Error(`${typeUrl} is not one of ${[...conformanceKinds.keys()].join(', ')}`);
  return kind;
}

function changeKey(node: string, typeUrl: string): string {
  return `${typeUrl}/${node}`;
}
