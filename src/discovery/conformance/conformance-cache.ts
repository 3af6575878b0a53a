/**
 * The bare cache behind the conformance target: resources as an adapter puts them in, a version for each type, a state
 * for each node id (spec/xds-conformance.md, "What the methods must do").
 */

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

/** A resource as an adapter hands it over. */
export interface BareResource {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** Which resource a method is about, and the version that its type should have. */
export interface ResourceAddress {
  readonly node: string;
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
}

interface Entry {
  readonly value: Uint8Array;
  readonly encoded: EncodedResource;
}

interface TypeState {
  readonly version: string;
  readonly entries: ReadonlyMap<string, Entry>;
}

/** Identity matters: an update that comes late must not touch the state that has taken its state's place. */
type NodeState = Map<string, TypeState>;

const noEntries: ReadonlyMap<string, Entry> = new Map();

export class ConformanceCache implements ResourceSource {
  readonly #nodes = new Map<string, NodeState>();
  readonly #changed: (change: ResourceChange) => void;
  /** Counts contents: what was put in anew counts as another content, also when its bytes are the same. */
  #revision = 0;

  /** @param changed called after every change that clients must hear of */
  constructor(changed: (change: ResourceChange) => void) {
    this.#changed = changed;
  }

  // ---- what the adapter does

  /**
   * Replaces the node's state. Types that the old state had and the new one has not are left without resources.
   *
   * @throws Error when a resource is of an unknown type or unreadable; the state is then as it was.
   */
  setState(node: string, version: string, resources: readonly BareResource[]): void {
    const state: NodeState = new Map();
    for (const [typeUrl, before] of this.#nodes.get(node) ?? []) state.set(typeUrl, { ...before, entries: noEntries });
    const present = new Map<string, Map<string, Entry>>();
    for (const { typeUrl, value } of resources) {
      const name = kindOf(typeUrl).nameOf(value);
      const entries = present.get(typeUrl) ?? new Map<string, Entry>();
      present.set(typeUrl, entries.set(name, this.#entry(typeUrl, name, value)));
    }
    for (const [typeUrl, entries] of present) state.set(typeUrl, { version, entries });
    this.#nodes.set(node, state);
    this.#tell(node, [...state.keys()]);
  }

  /** Forgets the node. Nothing is pushed: who still listens belongs to a scenario that is over. */
  clearState(node: string): void {
    this.#nodes.delete(node);
  }

  /** Creates the resource, bare. */
  addResource({ node, typeUrl, name, version }: ResourceAddress): void {
    const value = kindOf(typeUrl).bare(name);
    const state = this.#nodes.get(node) ?? new Map<string, TypeState>();
    this.#nodes.set(node, state);
    const before = state.get(typeUrl);
    const entries = new Map(before?.entries).set(name, this.#entry(typeUrl, name, value));
    this.#setType(node, state, typeUrl, { version: version || (before?.version ?? ''), entries });
  }

  /** Deletes the resource; answers whether there was one. An empty version leaves the type's as it is. */
  removeResource({ node, typeUrl, name, version }: ResourceAddress): boolean {
    const state = this.#nodes.get(node);
    const before = state?.get(typeUrl);
    if (state === undefined || before === undefined || !before.entries.has(name)) return false;
    const entries = new Map(before.entries);
    entries.delete(name);
    this.#setType(node, state, typeUrl, { version: version || before.version, entries });
    return true;
  }

  /**
   * Prepares a change of the resource's content; the answer carries it out, and says whether it could. If the node's
   * state is replaced or cleared before that, nothing happens.
   */
  updateResource({ node, typeUrl, name, version }: ResourceAddress): () => boolean {
    const state = this.#nodes.get(node);
    return () => {
      const before = state?.get(typeUrl);
      const entry = before?.entries.get(name);
      if (state === undefined || before === undefined || entry === undefined) return false;
      if (this.#nodes.get(node) !== state) return false;
      const value = kindOf(typeUrl).changed(entry.value, this.#revision + 1);
      const entries = new Map(before.entries).set(name, this.#entry(typeUrl, name, value));
      this.#setType(node, state, typeUrl, { version: version || before.version, entries });
      return true;
    };
  }

  // ---- what the ADS server asks

  /** Every node is served, also one that nothing is known of yet. */
  open(node: NodeIdentity): { readonly resources: NodeResources } {
    return {
      resources: {
        get: (typeUrl, names) => this.#get(node.id, typeUrl, names),
        typesToPush: (change, watched) =>
          watched.filter((typeUrl) => change.forced || change.configs.has(changeKey(node.id, typeUrl))),
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

  #entry(typeUrl: string, name: string, value: Uint8Array): Entry {
    return { value, encoded: encodeValue(typeUrl, value, name, { version: `${++this.#revision}` }) };
  }

  #setType(node: string, state: NodeState, typeUrl: string, type: TypeState): void {
    state.set(typeUrl, type);
    this.#tell(node, [typeUrl]);
  }

  #tell(node: string, typeUrls: readonly string[]): void {
    const configs = new Set(typeUrls.map((typeUrl) => changeKey(node, typeUrl)));
    this.#changed({ version: `${this.#revision}`, forced: false, configs });
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
