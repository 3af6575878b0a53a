/**
 * Encoded resources, made once and shared by every proxy that gets the same (spec/discovery.md §6.7).
 *
 * Two layers. A {@link ResourceMemory} keeps single things (a service's clusters, an assignment, a virtual host) across
 * contexts. Above it are whole lists: what a shape has of a type, by context. To the next context a list goes over by
 * reference when the change cannot concern it; otherwise it is the base from which the new one is made when somebody
 * asks. So publishing costs a step for each shape and type, however much is in the lists, and proxies that are served
 * from an older context for a moment still find theirs.
 */

import { WeakValues } from '../../model/collections/weak-values.ts';
import { configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import {
  clusterType,
  type Generator,
  generators,
  type RememberedType,
  type Resource,
  routeType,
} from '../../networking/index.ts';
import type { EncodedResource } from '../ads/resource-source.ts';
import { affectedNames, changesReach, hostsOfRules, mayTouch } from './affected-names.ts';
import { ContextHistory } from './context-history.ts';
import { encodeMade } from './encode-made.ts';
import type { ResourceMap } from './list-making.ts';
import { ListMaking } from './list-making.ts';
import type { PublishedContext } from './mesh-state.ts';
import { type NameList, NameLists } from './name-list.ts';
import { type MemoryCounts, ResourceMemory } from './resource-memory.ts';

export type Encode = (resource: Resource) => EncodedResource;

export interface EncodedCacheOptions {
  /** How a resource is framed; a test may count. */
  readonly encode?: Encode;
  /** Who makes the resources of a type; a test may bring its own. */
  readonly generators?: ReadonlyMap<string, Generator>;
  /** Most things kept, whole lists not counted (PILOT_XDS_CACHE_SIZE). 0: nothing is kept (PILOT_ENABLE_XDS_CACHE). */
  readonly maxEntries: number;
  /** PILOT_ENABLE_CDS_CACHE, PILOT_ENABLE_RDS_CACHE: true when absent. */
  readonly keepsClusters?: boolean;
  readonly keepsRoutes?: boolean;
}

/** What one shape has of a type (or of it under some names) in one context, or in all contexts that share the lane. */
interface Lane {
  readonly typeUrl: string;
  /** Held by the proxies that have it: a lane whose proxies are all gone is not carried over. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** The list of an earlier context, and that context's number in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  /** A context since then has changed what is in reach of the shape. */
  readonly reachChanged: boolean;
}

interface Lanes {
  readonly byKey: Map<string, Lane>;
  /** With as many, those are swept out whose proxies are gone or want something else. */
  sweepAt: number;
  /** By type and shape, the list that was made last: a client that asks for a name more has the others. */
  readonly lists: WeakValues<ResourceMap>;
  /** Lists that are being made, as long as somebody waits for them. */
  readonly makings: WeakValues<ListMaking>;
}

/** Lanes that are too few to be worth a look at which of them are of no use. */
const fewLanes = 1_000;

/**
 * Contexts for which a list stays a base that nobody asked for: its proxies are slow, or on their way out, and a base is
 * little help when much has changed since.
 */
const longestLag = 256;

export class EncodedCache {
  readonly #options: EncodedCacheOptions;
  readonly #encodeMade: Encode;
  readonly #generators: ReadonlyMap<string, Generator>;
  readonly #memory: ResourceMemory;
  readonly #notKept: ReadonlySet<string>;
  readonly #lanes = new WeakMap<PushContext, Lanes>();
  readonly #history = new ContextHistory();
  /** Lists made from a context, by what of a shape they depend on. */
  readonly #shared = new WeakMap<PushContext, WeakValues<ResourceMap>>();
  readonly #encoded = new WeakMap<Resource, EncodedResource>();
  readonly #names = new NameLists();
  readonly #shapeKeys = new WeakMap<ProxyShape, number>();
  #lastShapeKey = 0;
  /** Lanes of the latest context, for those who look into the cache. */
  #latest: WeakRef<Lanes> | undefined;

  constructor(options: EncodedCacheOptions) {
    const { maxEntries, keepsClusters = true, keepsRoutes = true } = options;
    this.#options = options;
    this.#encodeMade = options.encode ?? encodeMade;
    this.#generators = options.generators ?? generators;
    const types: [string, RememberedType, boolean][] = [
      [clusterType, 'CDS', keepsClusters],
      [routeType, 'RDS', keepsRoutes],
    ];
    const off = types.filter(([, , keeps]) => !keeps);
    this.#notKept = new Set(off.map(([typeUrl]) => typeUrl));
    this.#memory = new ResourceMemory({ maxEntries, notKept: new Set(off.map(([, type]) => type)) });
  }

  /** Reads of single things; a list that was there counts as one. */
  get counts(): Readonly<MemoryCounts> {
    return this.#memory.counts;
  }

  /** Single things kept. */
  get size(): number {
    return this.#memory.size;
  }

  /** How many objects anything that is kept depends on. */
  get dependentConfigs(): number {
    return this.#memory.dependentConfigs;
  }

  /** Encoded resources in the lists of the latest context, each once however many lists it is in, by type. */
  sizes(): Readonly<Record<string, { readonly entries: number; readonly bytes: number }>> {
    const byType = Map.groupBy(this.#latest?.deref()?.byKey.values() ?? [], ({ typeUrl }) => typeUrl);
    return Object.fromEntries(
      [...byType].map(([typeUrl, lanes]) => {
        const all = new Set(lanes.flatMap(({ list, base }) => [...(list ?? base ?? new Map()).values()]));
        return [typeUrl, { entries: all.size, bytes: [...all].reduce((sum, one) => sum + one.deltaFrame.length, 0) }];
      }),
    );
  }

  /** What a shape has of a type in a context, by name. Undefined for a type that nothing makes. */
  get(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): ResourceMap | undefined {
    const generator = this.#generators.get(typeUrl);
    if (generator === undefined) return undefined;
    if (generator.scope === 'all') {
      const all = this.#all(context, typeUrl, shape, generator);
      return names === '*' ? all : some(all, names);
    }
    // What is asked for by name is not listed: a proxy learns the names from other resources.
    return names === '*' ? nothing : this.#named(context, typeUrl, shape, names, generator);
  }

  /** Makes what `get` would take long for, piece by piece; undefined when it takes little. */
  prepare(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const generator = this.#generators.get(typeUrl);
    if (generator?.scope !== 'named' || names === '*' || !this.#keeps(typeUrl)) return undefined;
    const wanted = this.#names.of(names);
    const lane = this.#lane(context, typeUrl, shape, wanted);
    const making = this.#making(context, typeUrl, shape, wanted, lane, generator);
    return making?.isLong ? () => making.step() : undefined;
  }

  /** Takes over to a new context what it cannot have changed. */
  carryOver(published: PublishedContext): void {
    const { context, previous, forced } = published;
    const changed = withGateways(published);
    if (forced) this.#memory.clear();
    else this.#memory.forget(changed);
    this.#history.add({ ...published, changed: new Set([...changed, ...hostsOfRules(published)]) });
    const lanes = this.#lanesOf(context);
    const old = previous === undefined ? undefined : this.#lanes.get(previous);
    if (old === undefined || previous === undefined || forced) return;
    const number = this.#history.numberOf(previous)!;
    const keys = [...changed].map(parseConfigKey);
    const reach = new Map<ProxyShape, boolean>();
    const reachChangedFor = (shape: ProxyShape): boolean => {
      const known = reach.get(shape) ?? changesReach(keys, shape, context, previous);
      reach.set(shape, known);
      return known;
    };
    for (const [key, lane] of old.byKey) {
      const shape = lane.shape.deref();
      if (shape === undefined || !isInUse(lane)) continue;
      const { typeUrl } = lane;
      const isKept =
        lane.list !== undefined &&
        (!keys.some(({ kind }) => mayTouch(kind, typeUrl, shape.type)) ||
          this.#generators.get(typeUrl)?.isUntouched?.(keys, shape, context, previous));
      const next = isKept ? lane : outdated(lane, number, () => reachChangedFor(shape));
      if (next !== undefined) lanes.byKey.set(key, next);
    }
  }

  /** Forgets everything (`/debug/cachez?clear=true`); what was made for the present context is made again. */
  clear(context: PushContext | undefined): void {
    this.#memory.clear();
    if (context === undefined) return;
    this.#lanes.delete(context);
    this.#shared.delete(context);
  }

  #all(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: Extract<Generator, { scope: 'all' }>,
  ): ResourceMap {
    const lane = this.#lane(context, typeUrl, shape, undefined);
    if (lane.list !== undefined) return this.#hit(lane.list);
    const made = new Map<string, EncodedResource>();
    for (const resource of generator.build(shape, context, this.#memory)) {
      made.set(resource.name, this.#encode(resource, lane.base?.get(resource.name)));
    }
    lane.list = sameMap(lane.base, made) ? lane.base! : made;
    return lane.list;
  }

  #named(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[],
    generator: Extract<Generator, { scope: 'named' }>,
  ): ResourceMap {
    const wanted = this.#names.of(names);
    const lane = this.#lane(context, typeUrl, shape, wanted);
    const making = this.#making(context, typeUrl, shape, wanted, lane, generator);
    if (making === undefined) return this.#hit(lane.list!);
    lane.list = making.list();
    return lane.list;
  }

  /** Makes a lane's list; undefined when it is there. Shapes that share a list share its making. */
  #making(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    lane: Lane,
    generator: Extract<Generator, { scope: 'named' }>,
  ): ListMaking | undefined {
    if (lane.list !== undefined) return undefined;
    const projected = this.#projected(context, typeUrl, shape, wanted, generator);
    const shared = projected?.get();
    if (shared !== undefined) {
      lane.list = shared;
      return undefined;
    }
    const { lists, makings } = this.#lanesOf(context);
    const key = projected?.key ?? this.#laneKey(typeUrl, shape, wanted);
    const begun = makings.get(key);
    if (begun !== undefined) return begun;
    const { base } = lane;
    const ofShape = this.#laneKey(typeUrl, shape, undefined);
    const affected =
      base === undefined
        ? wanted.names
        : affectedNames(
            this.#history.since(lane.baseOf, context)!.changed,
            wanted,
            { typeUrl, nodeType: shape.type, reachChanged: lane.reachChanged },
            generator,
          );
    const making = new ListMaking({
      names: affected,
      base,
      known: base === undefined ? lists.get(ofShape) : undefined,
      build: (some) => generator.build(shape, context, some, this.#memory),
      encode: (resource, before) => this.#encode(resource, before),
      made: (list) => {
        lane.list = list;
        projected?.set(list);
        if (this.#keeps(typeUrl)) lists.set(ofShape, list);
      },
    });
    if (this.#keeps(typeUrl)) makings.set(key, making);
    return making;
  }

  /** The list that shapes share of which the type reads the same. */
  #projected(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList, generator: Generator) {
    if (!this.#keeps(typeUrl)) return undefined;
    const projection = generator.projection?.(shape, context);
    if (projection === undefined) return undefined;
    const lists = this.#shared.get(context) ?? new WeakValues<ResourceMap>();
    this.#shared.set(context, lists);
    const key = `${typeUrl} ${projection} ${names.key}`;
    return { key, get: () => lists.get(key), set: (list: ResourceMap) => void lists.set(key, list) };
  }

  #hit(list: ResourceMap): ResourceMap {
    this.#memory.counts.hits++;
    return list;
  }

  #lane(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList | undefined): Lane {
    const lanes = this.#lanesOf(context);
    const key = this.#laneKey(typeUrl, shape, names);
    const known = lanes.byKey.get(key);
    if (known !== undefined) return known;
    const lane: Lane = {
      typeUrl,
      shape: new WeakRef(shape),
      names: names && new WeakRef(names),
      list: undefined,
      base: undefined,
      baseOf: 0,
      reachChanged: false,
    };
    if (this.#keeps(typeUrl)) keep(lanes, key, lane);
    return lane;
  }

  #lanesOf(context: PushContext): Lanes {
    let lanes = this.#lanes.get(context);
    if (lanes === undefined) {
      lanes = { byKey: new Map(), sweepAt: fewLanes, lists: new WeakValues(), makings: new WeakValues() };
      this.#lanes.set(context, lanes);
      this.#latest = new WeakRef(lanes);
    }
    return lanes;
  }

  /** @param before what the name stood for: kept if nothing of it is another. */
  #encode(resource: Resource, before: EncodedResource | undefined): EncodedResource {
    const known = this.#encoded.get(resource);
    if (known !== undefined) return known;
    const made = this.#encodeMade(resource);
    const encoded = before?.version === made.version ? before : made;
    this.#encoded.set(resource, encoded);
    return encoded;
  }

  #keeps(typeUrl: string): boolean {
    return this.#options.maxEntries > 0 && !this.#notKept.has(typeUrl);
  }

  #laneKey(typeUrl: string, shape: ProxyShape, names: NameList | undefined): string {
    return `${typeUrl} ${this.#shapeKey(shape)} ${names?.key ?? ''}`;
  }

  #shapeKey(shape: ProxyShape): number {
    let key = this.#shapeKeys.get(shape);
    if (key === undefined) {
      key = ++this.#lastShapeKey;
      this.#shapeKeys.set(shape, key);
    }
    return key;
  }
}

/** Every assignment depends on the gateways of networks, whatever made them others. */
function withGateways({ context, previous, changed }: PublishedContext): ReadonlySet<string> {
  if (previous === undefined || context.networkGateways === previous.networkGateways) return changed;
  return new Set([...changed, configKeyText({ kind: 'NetworkGateways', namespace: '', name: '' })]);
}

const nothing: ResourceMap = new Map();

/** Somebody may still want what it has. */
function isInUse({ shape, names }: Lane): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Clients that want something else again and again leave lanes behind, however long it is until the next context. */
function keep(lanes: Lanes, key: string, lane: Lane): void {
  const { byKey } = lanes;
  if (byKey.size >= lanes.sweepAt) {
    for (const [other, unused] of byKey) if (!isInUse(unused)) byKey.delete(other);
    lanes.sweepAt = Math.max(fewLanes, 2 * byKey.size);
  }
  byKey.set(key, lane);
}

/** A lane for the context after the one of this number, from whose list (or base) the list there will be made. */
function outdated(lane: Lane, number: number, reachChanges: () => boolean): Lane | undefined {
  const isNamed = lane.names !== undefined;
  if (lane.list !== undefined) {
    return { ...lane, list: undefined, base: lane.list, baseOf: number, reachChanged: isNamed && reachChanges() };
  }
  if (lane.base === undefined || number - lane.baseOf >= longestLag) return undefined;
  return { ...lane, reachChanged: lane.reachChanged || (isNamed && reachChanges()) };
}

const selections = new WeakMap<ResourceMap, WeakMap<readonly string[], ResourceMap>>();

/** Some of a list, the same map for those who ask with the same array. */
function some(all: ResourceMap, names: readonly string[]): ResourceMap {
  const ofList = selections.get(all) ?? new WeakMap<readonly string[], ResourceMap>();
  selections.set(all, ofList);
  let chosen = ofList.get(names);
  if (chosen === undefined) {
    chosen = new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!]] : [])));
    ofList.set(names, chosen);
  }
  return chosen;
}

function sameMap(a: ResourceMap | undefined, b: ResourceMap): boolean {
  if (a?.size !== b.size) return false;
  const names = a.keys();
  for (const [name, resource] of b) if (names.next().value !== name || a.get(name) !== resource) return false;
  return true;
}
