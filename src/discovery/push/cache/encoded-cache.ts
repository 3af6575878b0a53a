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

import { WeakValues } from '../../../model/collections/weak-values.ts';
import { configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { grpcGenerators } from '../../../networking/grpc/index.ts';
import {
  clusterType,
  type Generator,
  generators,
  type RememberedType,
  type Resource,
  routeType,
} from '../../../networking/index.ts';
import { frameOf } from '../../xds/responses/ads-response.ts';
import { affectedNames, changesReach, hostsOfRules, mayTouch } from '../affected-names.ts';
import { changeSize } from '../change-size.ts';
import { ContextHistory } from '../contexts/context-history.ts';
import type { Publication, PublishedContext } from '../contexts/mesh-state.ts';
import { ContextSets } from './context-sets.ts';
import { layerOf } from './layer.ts';
import { ListMaking, type ResourceMap } from './list-making.ts';
import { some } from './list-selection.ts';
import { ListsAhead } from './lists-ahead.ts';
import { ModelLists, type NameList, NameLists } from './name-list.ts';
import { type Encode, ResourceEncoder } from './resource-encoder.ts';
import { type MemoryCounts, ResourceMemory, type ThrashingFigures } from './resource-memory.ts';
import { isInUse, outdated, type ResourceSet } from './resource-sets.ts';
import { WholeListMaking } from './whole-list-making.ts';

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

type AllGenerator = Extract<Generator, { scope: 'all' }>;
type NamedGenerator = Extract<Generator, { scope: 'named' }>;

/** Resources of a list of everything that are made at once. */
const longWholeList = 64;
/** Changed objects, services among them, after which lists are built at once; after more they are built ahead, in pieces. */
const defaultMaxChangesAtOnce = 64;
/** Values in changed objects after which lists are built at once: a few objects may be as large as many. */
const maxChangeSizeAtOnce = 10_000;

export class EncodedCache {
  readonly #options: EncodedCacheOptions;
  readonly #encoder: ResourceEncoder;
  readonly #generators: ReadonlyMap<string, Generator>;
  readonly #memory: ResourceMemory;
  readonly #notKept: ReadonlySet<string>;
  readonly #sets = new ContextSets((typeUrl) => this.#keeps(typeUrl));
  readonly #history = new ContextHistory();
  /** Lists made from a context, by what of a shape they depend on. */
  readonly #shared = new WeakMap<PushContext, WeakValues<ResourceMap>>();
  readonly #names = new NameLists();
  readonly #ahead: ListsAhead;
  readonly #models = new ModelLists();
  constructor(options: EncodedCacheOptions) {
    const { maxEntries, maxBytes, thrashing, keepsClusters = true, keepsRoutes = true } = options;
    this.#options = options;
    this.#encoder = new ResourceEncoder(options.encode, options.unencodable);
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
    this.#ahead = new ListsAhead({
      ...{ sets: this.#sets, names: this.#names, memory: this.#memory },
      encode: (resource) => this.#encoder.encode(resource, undefined),
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
    const byType = Map.groupBy(this.#sets.latest, ({ typeUrl }) => typeUrl);
    return Object.fromEntries(
      [...byType].map(([typeUrl, sets]) => {
        const all = new Set(sets.flatMap(({ list, base }) => [...(list ?? base ?? new Map()).values()]));
        // Resources may have pieces in common.
        const pieces = new Set([...all].flatMap((one) => frameOf(one, true)));
        return [typeUrl, { entries: all.size, bytes: [...pieces].reduce((sum, { length }) => sum + length, 0) }];
      }),
    );
  }

  #generatorOf(typeUrl: string, { proxyless }: ProxyShape): Generator | undefined {
    return (proxyless ? grpcGenerators : this.#generators).get(typeUrl);
  }

  /** What a shape has of a type in a context, by name. Undefined for a type that nothing makes. */
  get(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): ResourceMap | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
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
    const generator = this.#generatorOf(typeUrl, shape);
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
    const generator = this.#generatorOf(typeUrl, shape);
    const ahead =
      generator && this.#keeps(typeUrl) ? this.#ahead.making(context, typeUrl, shape, names, generator) : undefined;
    const rest = this.#prepareList(context, typeUrl, shape, names) ?? this.#prepareWhole(context, typeUrl, shape);
    if (ahead === undefined) return rest;
    return () => ahead.piece() || rest?.() === true;
  }

  #prepareList(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
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
    const set = this.#sets.set(context, typeUrl, shape, wanted);
    if (set.list !== undefined) return undefined;
    const layer = layerOf(context, shape, generator);
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
    const sets = this.#sets.of(context, forced || previous === undefined || isMuch());
    const old = previous === undefined ? undefined : this.#sets.known(previous);
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
          this.#generatorOf(typeUrl, shape)?.isUntouched?.(keys, shape, context, previous));
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
    const set = this.#sets.set(context, typeUrl, shape, undefined);
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
    const { wholeMakings } = this.#sets.of(context);
    const key = this.#sets.key(typeUrl, shape, undefined);
    const begun = wholeMakings.get(key);
    if (begun !== undefined && !begun.hasFailed) return begun;
    const { build, building } = generator;
    const making = new WholeListMaking({
      base: set.base,
      build: () => build(shape, context, this.#memory),
      building: building?.(shape, context, this.#memory),
      encode: (resource, before) => this.#encoder.encode(resource, before),
      made: (list) => {
        set.list = list;
      },
    });
    if (this.#keeps(typeUrl)) wholeMakings.set(key, making);
    return making;
  }

  /** Makes a long list of everything in pieces; undefined: it is there, or it is short. */
  #prepareWhole(context: PushContext, typeUrl: string, shape: ProxyShape): (() => boolean) | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
    if (generator?.scope !== 'all' || generator.building === undefined || !this.#keeps(typeUrl)) return undefined;
    if (this.#sets.set(context, typeUrl, shape, undefined).list !== undefined) return undefined;
    // Mostly it is the list of a common shape with a few differences.
    const listed = layerOf(context, shape, generator)?.common ?? shape;
    const set = this.#sets.set(context, typeUrl, listed, undefined);
    if (set.list !== undefined) return undefined;
    const isLong = this.#sets.of(context).makesAhead || set.base === undefined || set.base.size > longWholeList;
    if (!isLong) return undefined;
    const making = this.#wholeMaking(context, typeUrl, listed, generator, set);
    return () => making.step();
  }

  #layeredOfAll(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: AllGenerator,
    before: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#keeps(typeUrl) ? layerOf(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { common, subjects } = layer;
    const own = generator.sharing!.own(shape, common, context, subjects, this.#memory);
    if (own === undefined) return undefined;
    const base = this.#all(context, typeUrl, common, generator);
    return this.#encoder.layered(base, own.resources, own.without, before);
  }

  #layeredOfNamed(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    generator: NamedGenerator,
    before: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#keeps(typeUrl) ? layerOf(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { model, added, missing } = this.#models.of(wanted);
    const { subjectOfName } = generator.narrowing!;
    const differing = [...layer.subjects].flatMap((subject) => wanted.namesOf(subject, subjectOfName));
    const names = [...new Set([...added, ...differing, ...generator.sharing!.alsoAbout(layer.subjects, wanted.names)])];
    const base = this.#named(context, typeUrl, layer.common, model, generator);
    const own = names.length === 0 ? [] : generator.build(shape, context, names, this.#memory);
    const made = new Set(own.map(({ name }) => name));
    return this.#encoder.layered(base, own, [...missing, ...names.filter((name) => !made.has(name))], before);
  }

  #named(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    wanted: NameList,
    generator: NamedGenerator,
  ): ResourceMap {
    const set = this.#sets.set(context, typeUrl, shape, wanted);
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
    const { lists, makings, makesAhead } = this.#sets.of(context);
    const key = projected?.key ?? this.#sets.key(typeUrl, shape, wanted);
    const begun = makings.get(key);
    if (begun !== undefined) return begun;
    const { base } = set;
    const ofShape = this.#sets.key(typeUrl, shape, undefined);
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
      encode: (resource, before) => this.#encoder.encode(resource, before) ?? before,
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

  #keeps(typeUrl: string): boolean {
    return this.#options.maxEntries > 0 && !this.#notKept.has(typeUrl);
  }
}

/** Every assignment depends on the gateways of networks, whatever made them others. */
function withGateways({ context, previous, changed }: PublishedContext): ReadonlySet<string> {
  if (previous === undefined || context.networkGateways === previous.networkGateways) return changed;
  return new Set([...changed, configKeyText({ kind: 'NetworkGateways', namespace: '', name: '' })]);
}

const nothing: ResourceMap = new Map();
