/**
 * Encoded resources, made once and shared by every proxy that gets the same (spec/discovery.md §6.7).
 *
 * Two layers. A {@link ResourceMemory} keeps single things (a service's clusters, an assignment, a virtual host) across
 * contexts. Above it are whole lists: what a shape has of a type, by context. To the next context a list goes over by
 * reference when the change cannot concern it; otherwise it is the base from which the new one is made when somebody
 * asks. A list is another one with a few differences where proxies of many namespaces have most of it in common
 * ({@link LayeredResources}): the common one is listed, encoded and compared once. So publishing costs a step for each
 * shape and type, however much is in the lists, and proxies that are served from an older context for a moment still find
 * theirs.
 */

import { HeldKeys } from '../../model/collections/held-keys.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import { configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import {
  clusterType,
  type Generator,
  generators,
  type RememberedType,
  Resource,
  routeType,
} from '../../networking/index.ts';
import type { EncodedResource } from '../ads/resource-source.ts';
import { frameOf } from '../ads/responses/ads-response.ts';
import { LayeredResources } from '../ads/responses/layered-resources.ts';
import { affectedNames, changesReach, hostsOfRules, mayTouch } from './affected-names.ts';
import { changeSize } from './change-size.ts';
import { ContextHistory } from './context-history.ts';
import { encodeMade } from './encode-made.ts';
import type { ResourceMap } from './list-making.ts';
import { encodeAhead, ListMaking } from './list-making.ts';
import { MakingAhead } from './making-ahead.ts';
import type { Publication, PublishedContext } from './mesh-state.ts';
import { ModelLists, type NameList, NameLists } from './name-list.ts';
import { type MemoryCounts, ResourceMemory, type ThrashingFigures } from './resource-memory.ts';
import { WholeListMaking } from './whole-list-making.ts';

export type Encode = (resource: Resource) => EncodedResource;

export interface EncodedCacheOptions {
  /** How a resource is framed; a test may count. */
  readonly encode?: Encode;
  /** Who makes the resources of a type; a test may bring its own. */
  readonly generators?: ReadonlyMap<string, Generator>;
  /** Most things kept, whole lists not counted (PILOT_XDS_CACHE_SIZE). 0: nothing is kept (PILOT_ENABLE_XDS_CACHE). */
  readonly maxEntries: number;
  /** About how many bytes they may hold (PILOT_XDS_CACHE_BYTES); without a limit when absent. */
  readonly maxBytes?: number;
  /** Told when the cache is so small that much is made again and again. */
  readonly thrashing?: (figures: ThrashingFigures) => void;
  /** Told of a resource that cannot be encoded, once. */
  readonly unencodable?: (resource: Resource, error: unknown) => void;
  /** PILOT_ENABLE_CDS_CACHE, PILOT_ENABLE_RDS_CACHE: true when absent. */
  readonly keepsClusters?: boolean;
  readonly keepsRoutes?: boolean;
  /** A test may build everything ahead. */
  readonly maxChangesAtOnce?: number;
}

/** What one shape has of a type (or of it under some names) in one context, or in all contexts that share the set. */
interface ResourceSet {
  readonly typeUrl: string;
  /** Held by the proxies that have it: a set whose proxies are all gone is not carried over. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** The list of an earlier context, and that context's number in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  /** A context since then has changed what is in reach of the shape. */
  readonly reachChanged: boolean;
}

type AllGenerator = Extract<Generator, { scope: 'all' }>;
type NamedGenerator = Extract<Generator, { scope: 'named' }>;

/** Whose resources a shape has, and the subjects of which it has its own. */
interface Layer {
  readonly common: ProxyShape;
  readonly subjects: ReadonlySet<string>;
}

interface ResourceSets {
  readonly byKey: Map<string, ResourceSet>;
  /** Number of sets at which those are swept out whose proxies are gone or want something else. */
  sweepAt: number;
  /** The list that was made last, by type and shape: a client that asks for a name more has the others. */
  readonly lists: WeakValues<ResourceMap>;
  /** Little of the previous context was taken over: building a whole list would block the event loop. */
  readonly makesAhead: boolean;
  /** What is made ahead of the first lists, by type and what of a proxy it depends on. */
  readonly ahead: Map<string, MakingAhead>;
  /** Lists that are being made, as long as somebody waits for them. */
  readonly makings: WeakValues<ListMaking>;
  readonly wholeMakings: WeakValues<WholeListMaking>;
}

/** Resources of a list of everything that are made at once. */
const longWholeList = 64;
/** Chunks of an encoded resource, of some twenty parts each: what has more is not made at once. */
const manyChunks = 64;

/** Types, namespaces of proxies, names of route configurations. */
const mostAhead = 1_024;

/** Changed objects, services among them, after which lists are built at once; after more they are built ahead, in pieces. */
const defaultMaxChangesAtOnce = 64;
/** Values in changed objects after which lists are built at once: a few objects may be as large as many. */
const maxChangeSizeAtOnce = 10_000;

/** Sets that are too few to be worth a look at which of them are of no use. */
const fewSets = 1_000;

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
  readonly #sets = new WeakMap<PushContext, ResourceSets>();
  readonly #history = new ContextHistory();
  /** Lists made from a context, by what of a shape they depend on. */
  readonly #shared = new WeakMap<PushContext, WeakValues<ResourceMap>>();
  readonly #encoded = new WeakMap<Resource, EncodedResource>();
  readonly #unencodable = new WeakSet<Resource>();
  readonly #names = new NameLists();
  readonly #models = new ModelLists();
  readonly #shapeKeys = new WeakMap<ProxyShape, number>();
  #lastShapeKey = 0;
  /** Sets of the latest context. */
  #latest: WeakRef<ResourceSets> | undefined;
  /** Sets of shapes and names that nobody has any more, by key: their lists may be large. */
  readonly #holders = new HeldKeys((key) => {
    const byKey = this.#latest?.deref()?.byKey;
    const set = byKey?.get(key);
    // Another set may have come in the place of this one.
    if (set !== undefined && !isInUse(set)) byKey?.delete(key);
  });

  constructor(options: EncodedCacheOptions) {
    const { maxEntries, maxBytes, thrashing, keepsClusters = true, keepsRoutes = true } = options;
    this.#options = options;
    this.#encodeMade = options.encode ?? encodeMade;
    this.#generators = options.generators ?? generators;
    const types: [string, RememberedType, boolean][] = [
      [clusterType, 'CDS', keepsClusters],
      [routeType, 'RDS', keepsRoutes],
    ];
    const off = types.filter(([, , keeps]) => !keeps);
    this.#notKept = new Set(off.map(([typeUrl]) => typeUrl));
    this.#memory = new ResourceMemory({
      maxEntries,
      ...(maxBytes !== undefined && { maxBytes }),
      ...(thrashing && { thrashing }),
      notKept: new Set(off.map(([, type]) => type)),
    });
  }

  /** Reads of single things; a list that was there counts as one. */
  get counts(): Readonly<MemoryCounts> {
    return this.#memory.counts;
  }

  /** Single things kept. */
  get size(): number {
    return this.#memory.size;
  }

  /** About what single things hold, as of the last change. */
  get bytes(): number {
    return this.#memory.bytes;
  }

  /** How many objects anything that is kept depends on. */
  get dependentConfigs(): number {
    return this.#memory.dependentConfigs;
  }

  /** Encoded resources in the lists of the latest context, each once however many lists it is in, by type. */
  sizes(): Readonly<Record<string, { readonly entries: number; readonly bytes: number }>> {
    const byType = Map.groupBy(this.#latest?.deref()?.byKey.values() ?? [], ({ typeUrl }) => typeUrl);
    return Object.fromEntries(
      [...byType].map(([typeUrl, sets]) => {
        const all = new Set(sets.flatMap(({ list, base }) => [...(list ?? base ?? new Map()).values()]));
        // Resources may have pieces in common.
        const pieces = new Set([...all].flatMap((one) => frameOf(one, true)));
        return [typeUrl, { entries: all.size, bytes: [...pieces].reduce((sum, { length }) => sum + length, 0) }];
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
    return names === '*' ? nothing : this.#named(context, typeUrl, shape, this.#names.of(names), generator);
  }

  /** What a shape has of a type with what each is made from, for whoever asks why: made for the question, with what is kept. */
  made(context: PushContext, typeUrl: string, shape: ProxyShape, names: readonly string[] | '*'): readonly Resource[] {
    const generator = this.#generators.get(typeUrl);
    if (generator?.scope === 'all') {
      const all = generator.build(shape, context, this.#memory);
      return names === '*' ? all : all.filter(({ name }) => names.includes(name));
    }
    return names === '*' ? [] : (generator?.build(shape, context, names, this.#memory) ?? []);
  }

  /** Makes what `get` would take long for, piece by piece; undefined when it takes little. */
  prepare(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const ahead = this.#ahead(context, typeUrl, shape, names);
    const rest = this.#prepareList(context, typeUrl, shape, names) ?? this.#prepareWhole(context, typeUrl, shape);
    if (ahead === undefined) return rest;
    return () => ahead.piece() || rest?.() === true;
  }

  #ahead(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): MakingAhead | undefined {
    const { makesAhead, ahead } = this.#setsOf(context);
    const generator = this.#generators.get(typeUrl);
    if (generator?.ahead === undefined || !this.#keeps(typeUrl)) return undefined;
    if (generator.scope === 'named' && names === '*') return undefined;
    const isLong = makesAhead || this.#isNew(context, typeUrl, shape, names, generator);
    if (!isLong && !this.#hasManyChunks(context, typeUrl, shape, names, generator)) return undefined;
    const projection = generator.projection?.(shape, context) ?? '';
    const key = `${shape.type} ${typeUrl} ${projection} ${names === '*' ? '' : names.join()}`;
    let making = ahead.get(key);
    if (making === undefined) {
      // Names of clients are without end, what they share is not.
      if (ahead.size >= mostAhead) return undefined;
      const parts = generator.ahead(shape, context, this.#memory, names === '*' ? [] : names);
      making = new MakingAhead(parts, (part) => {
        if (part instanceof Resource) this.#encode(part, undefined);
        else encodeAhead(part);
      });
      ahead.set(key, making);
    }
    return making.isDone ? undefined : making;
  }

  /** Whether the whole list has to be made, rather than what is another than in an earlier context. */
  #isNew(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): boolean {
    const isNewFor = (of: ProxyShape): boolean => {
      const list = generator.scope === 'all' || names === '*' ? undefined : this.#names.of(names);
      const { list: made, base } = this.#set(context, typeUrl, of, list);
      return made === undefined && base === undefined;
    };
    if (!isNewFor(shape)) return false;
    const layer = generator.scope === 'all' ? this.#layer(context, shape, generator) : undefined;
    return layer === undefined || isNewFor(layer.common);
  }

  /** Whether a resource that is asked for by name, and is another now, is made of very many parts: a route configuration. */
  #hasManyChunks(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): boolean {
    if (generator.scope !== 'named' || names === '*') return false;
    const { list, base } = this.#set(context, typeUrl, shape, this.#names.of(names));
    return list === undefined && [...(base?.values() ?? [])].some(({ rest }) => rest.length > manyChunks);
  }

  #prepareList(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const generator = this.#generators.get(typeUrl);
    if (generator?.scope !== 'named' || names === '*' || !this.#keeps(typeUrl)) return undefined;
    const making = this.#makingOf(context, typeUrl, shape, this.#names.of(names), generator);
    return making?.isLong ? () => making.step() : undefined;
  }

  /** What takes long of a list: where it is made from another one, that is. */
  #makingOf(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    generator: NamedGenerator,
  ): ListMaking | undefined {
    const set = this.#set(context, typeUrl, shape, wanted);
    if (set.list !== undefined) return undefined;
    const layer = this.#layer(context, shape, generator);
    if (layer === undefined) return this.#making(context, typeUrl, shape, wanted, set, generator);
    return this.#makingOf(context, typeUrl, layer.common, this.#models.of(wanted).model, generator);
  }

  /** Takes over to a new context what it cannot have changed. */
  carryOver(published: PublishedContext & Partial<Pick<Publication, 'configs'>>): void {
    const { context, previous, forced, configs } = published;
    const changed = withGateways(published);
    if (forced) this.#memory.clear();
    else this.#memory.forget(changed);
    this.#history.add({ ...published, changed: new Set([...changed, ...hostsOfRules(published)]) });
    const { maxChangesAtOnce = defaultMaxChangesAtOnce } = this.#options;
    const isMuch = (): boolean =>
      changed.size > maxChangesAtOnce ||
      changeSize(changed, context, configs, maxChangeSizeAtOnce) >= maxChangeSizeAtOnce;
    const sets = this.#setsOf(context, forced || previous === undefined || isMuch());
    const old = previous === undefined ? undefined : this.#sets.get(previous);
    if (old === undefined || previous === undefined || forced) return;
    const number = this.#history.numberOf(previous)!;
    const keys = [...changed].map(parseConfigKey);
    const reach = new Map<ProxyShape, boolean>();
    const reachChangedFor = (shape: ProxyShape): boolean => {
      const known = reach.get(shape) ?? changesReach(keys, shape, context, previous);
      reach.set(shape, known);
      return known;
    };
    for (const [key, set] of old.byKey) {
      const shape = set.shape.deref();
      if (shape === undefined || !isInUse(set)) continue;
      const { typeUrl } = set;
      const isKept =
        set.list !== undefined &&
        (!keys.some(({ kind }) => mayTouch(kind, typeUrl, shape.type)) ||
          this.#generators.get(typeUrl)?.isUntouched?.(keys, shape, context, previous));
      const next = isKept ? set : outdated(set, number, () => reachChangedFor(shape));
      if (next !== undefined) sets.byKey.set(key, next);
    }
  }

  /** Forgets everything (`/debug/cachez?clear=true`); what was made for the present context is made again. */
  clear(context: PushContext | undefined): void {
    this.#memory.clear();
    if (context === undefined) return;
    this.#sets.delete(context);
    this.#shared.delete(context);
  }

  #all(context: PushContext, typeUrl: string, shape: ProxyShape, generator: AllGenerator): ResourceMap {
    const set = this.#set(context, typeUrl, shape, undefined);
    if (set.list !== undefined) return this.#hit(set.list);
    set.list = this.#layeredOfAll(context, typeUrl, shape, generator, set.base);
    if (set.list !== undefined) return set.list;
    this.#wholeMaking(context, typeUrl, shape, generator, set).finish();
    return set.list!;
  }

  #wholeMaking(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: AllGenerator,
    set: ResourceSet,
  ): WholeListMaking {
    const { wholeMakings } = this.#setsOf(context);
    const key = this.#setKey(typeUrl, shape, undefined);
    const begun = wholeMakings.get(key);
    if (begun !== undefined && !begun.hasFailed) return begun;
    const { build, building } = generator;
    const making = new WholeListMaking({
      base: set.base,
      build: () => build(shape, context, this.#memory),
      building: building?.(shape, context, this.#memory),
      encode: (resource, before) => this.#encode(resource, before),
      made: (list) => {
        set.list = list;
      },
    });
    if (this.#keeps(typeUrl)) wholeMakings.set(key, making);
    return making;
  }

  /** Makes a long list of everything in pieces; undefined: it is there, or it is short. */
  #prepareWhole(context: PushContext, typeUrl: string, shape: ProxyShape): (() => boolean) | undefined {
    const generator = this.#generators.get(typeUrl);
    if (generator?.scope !== 'all' || generator.building === undefined || !this.#keeps(typeUrl)) return undefined;
    if (this.#set(context, typeUrl, shape, undefined).list !== undefined) return undefined;
    // Mostly it is the list of a common shape with a few differences.
    const listed = this.#layer(context, shape, generator)?.common ?? shape;
    const set = this.#set(context, typeUrl, listed, undefined);
    if (set.list !== undefined) return undefined;
    const isLong = this.#setsOf(context).makesAhead || set.base === undefined || set.base.size > longWholeList;
    if (!isLong) return undefined;
    const making = this.#wholeMaking(context, typeUrl, listed, generator, set);
    return () => making.step();
  }

  /** A shape whose resources are those of a common one, but for a few; undefined where it has a list of its own. */
  #layer(context: PushContext, shape: ProxyShape, { sharing }: Generator): Layer | undefined {
    for (const common of sharing?.commonShapes(shape, context) ?? []) {
      const subjects = sharing!.differing(shape, common, context);
      if (subjects !== undefined) return { common, subjects };
    }
    return undefined;
  }

  #layeredOfAll(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: AllGenerator,
    before: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#keeps(typeUrl) ? this.#layer(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { common, subjects } = layer;
    const own = generator.sharing!.own(shape, common, context, subjects, this.#memory);
    if (own === undefined) return undefined;
    const base = this.#all(context, typeUrl, common, generator);
    return this.#layered(base, own.resources, own.without, before);
  }

  #layeredOfNamed(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    generator: NamedGenerator,
    before: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#keeps(typeUrl) ? this.#layer(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { model, added, missing } = this.#models.of(wanted);
    const { subjectOfName } = generator.narrowing!;
    const differing = [...layer.subjects].flatMap((subject) => wanted.namesOf(subject, subjectOfName));
    const names = [...new Set([...added, ...differing, ...generator.sharing!.alsoAbout(layer.subjects, wanted.names)])];
    const base = this.#named(context, typeUrl, layer.common, model, generator);
    const own = names.length === 0 ? [] : generator.build(shape, context, names, this.#memory);
    const made = new Set(own.map(({ name }) => name));
    return this.#layered(base, own, [...missing, ...names.filter((name) => !made.has(name))], before);
  }

  #layered(
    base: ResourceMap,
    own: readonly Resource[],
    without: readonly string[],
    before: ResourceMap | undefined,
  ): ResourceMap {
    const encoded: EncodedResource[] = [];
    // What the others have is none of these.
    const missing = [...without];
    for (const resource of own) {
      const { name } = resource;
      const made = this.#encode(resource, base.get(name)) ?? before?.get(name);
      if (made === undefined) missing.push(name);
      // The same bytes may have been made for others meanwhile.
      else encoded.push([base.get(name), before?.get(name)].find((one) => one?.version === made.version) ?? made);
    }
    return LayeredResources.over(base, encoded, missing, before);
  }

  #named(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    generator: NamedGenerator,
  ): ResourceMap {
    const set = this.#set(context, typeUrl, shape, wanted);
    if (set.list !== undefined) return this.#hit(set.list);
    set.list =
      this.#layeredOfNamed(context, typeUrl, shape, wanted, generator, set.base) ??
      this.#making(context, typeUrl, shape, wanted, set, generator)?.list() ??
      this.#hit(set.list!);
    return set.list;
  }

  /** Makes a set's list; undefined when it is there. Shapes that share a list share its making. */
  #making(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    set: ResourceSet,
    generator: NamedGenerator,
  ): ListMaking | undefined {
    if (set.list !== undefined) return undefined;
    const projected = this.#projected(context, typeUrl, shape, wanted, generator);
    const shared = projected?.get();
    if (shared !== undefined) {
      set.list = shared;
      return undefined;
    }
    const { lists, makings, makesAhead } = this.#setsOf(context);
    const key = projected?.key ?? this.#setKey(typeUrl, shape, wanted);
    const begun = makings.get(key);
    if (begun !== undefined) return begun;
    const { base } = set;
    const ofShape = this.#setKey(typeUrl, shape, undefined);
    const since = base === undefined ? undefined : this.#history.since(set.baseOf, context);
    const affected =
      // Of a base that is further behind than what is remembered nobody knows what is another.
      since === undefined || since.forced
        ? wanted.names
        : affectedNames(
            since.changed,
            wanted,
            { typeUrl, nodeType: shape.type, reachChanged: set.reachChanged },
            generator,
          );
    const making = new ListMaking({
      names: affected,
      base,
      known: base === undefined ? lists.get(ofShape) : undefined,
      build: (some) => generator.build(shape, context, some, this.#memory),
      ...(generator.building && {
        building: (some) => generator.building!(shape, context, some, this.#memory),
        isHeavy: makesAhead || base === undefined || shape.type === 'router',
      }),
      encode: (resource, before) => this.#encode(resource, before) ?? before,
      made: (list) => {
        set.list = list;
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

  #set(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList | undefined): ResourceSet {
    const sets = this.#setsOf(context);
    const key = this.#setKey(typeUrl, shape, names);
    const known = sets.byKey.get(key);
    if (known !== undefined) return known;
    const set: ResourceSet = {
      typeUrl,
      shape: new WeakRef(shape),
      names: names && new WeakRef(names),
      list: undefined,
      base: undefined,
      baseOf: 0,
      reachChanged: false,
    };
    if (!this.#keeps(typeUrl)) return set;
    keep(sets, key, set);
    this.#holders.hold(key, names === undefined ? [shape] : [shape, names]);
    return set;
  }

  #setsOf(context: PushContext, makesAhead = true): ResourceSets {
    let sets = this.#sets.get(context);
    if (sets === undefined) {
      sets = {
        ...{ byKey: new Map(), sweepAt: fewSets, lists: new WeakValues(), makings: new WeakValues() },
        ...{ makesAhead, ahead: new Map(), wholeMakings: new WeakValues<WholeListMaking>() },
      };
      this.#sets.set(context, sets);
      this.#latest = new WeakRef(sets);
    }
    return sets;
  }

  /**
   * Undefined where it cannot be encoded: that costs the resource, and nobody else. Its name stands for what it stood for before, or for nothing.
   *
   * @param before what the name stood for: kept if nothing of it is another
   */
  #encode(resource: Resource, before: EncodedResource | undefined): EncodedResource | undefined {
    const known = this.#encoded.get(resource);
    // Encoded ahead, without the one before at hand.
    if (known !== undefined) return before?.version === known.version ? before : known;
    if (this.#unencodable.has(resource)) return undefined;
    let made: EncodedResource;
    try {
      made = this.#encodeMade(resource);
    } catch (error) {
      this.#unencodable.add(resource);
      this.#options.unencodable?.(resource, error);
      return undefined;
    }
    const encoded = before?.version === made.version ? before : made;
    this.#encoded.set(resource, encoded);
    return encoded;
  }

  #keeps(typeUrl: string): boolean {
    return this.#options.maxEntries > 0 && !this.#notKept.has(typeUrl);
  }

  #setKey(typeUrl: string, shape: ProxyShape, names: NameList | undefined): string {
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

/** Whether somebody may still want what the set has. */
function isInUse({ shape, names }: ResourceSet): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Clients that want something else again and again leave sets behind, however long it is until the next context. */
function keep(sets: ResourceSets, key: string, set: ResourceSet): void {
  const { byKey } = sets;
  if (byKey.size >= sets.sweepAt) {
    for (const [other, unused] of byKey) if (!isInUse(unused)) byKey.delete(other);
    sets.sweepAt = Math.max(fewSets, 2 * byKey.size);
  }
  byKey.set(key, set);
}

/** A set for the context after the one of this number, from whose list (or base) the list there will be made. */
function outdated(set: ResourceSet, number: number, reachChanges: () => boolean): ResourceSet | undefined {
  const isNamed = set.names !== undefined;
  if (set.list !== undefined) {
    return { ...set, list: undefined, base: set.list, baseOf: number, reachChanged: isNamed && reachChanges() };
  }
  if (set.base === undefined || number - set.baseOf >= longestLag) return undefined;
  return { ...set, reachChanged: set.reachChanged || (isNamed && reachChanges()) };
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
