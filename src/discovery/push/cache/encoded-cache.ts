/**
 * Encoded resources, built once and shared by all proxies that receive the same ones.
 *
 * There are two layers. A {@link ResourceMemory} caches single values (a service's clusters, an assignment, a virtual host) across push contexts.
 * Above it are complete lists by context, type and shape. The next context reuses a list if the change cannot affect it; otherwise the list is the
 * base of a new one. Lists that differ little from a common one store only the differences ({@link LayeredResources}).
 */

import { WeakValues } from '../../../model/collections/weak-values.ts';
import { configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { grpcGenerators } from '../../../networking/grpc/index.ts';
import {
  type CachedType,
  clusterType,
  type EnvoyResource,
  type Generator,
  generators,
  routeType,
} from '../../../networking/index.ts';
import { frameOf } from '../../xds/responses/ads-response.ts';
import { affectedNames, changesVisibleServices, hostsOfRules, mayAffectType } from '../affected-names.ts';
import { changeSize } from '../change-size.ts';
import { ContextHistory } from '../contexts/context-history.ts';
import type { ContextPublication, Publication } from '../contexts/mesh-state.ts';
import { ContextSets } from './context-sets.ts';
import { ListBuild, type ResourceMap } from './list-build.ts';
import { selectFrom } from './list-selection.ts';
import { ListsAhead } from './lists-ahead.ts';
import { InternedNameLists, ModelLists, type NameList } from './name-list.ts';
import { type EncodeResource, ResourceEncoder } from './resource-encoder.ts';
import { type MemoryCounts, ResourceMemory, type ThrashingFigures } from './resource-memory.ts';
import { type CachedSet, isSetInUse, outdatedSet } from './resource-sets.ts';
import { sharedLayerOf } from './shared-layer.ts';
import { WholeListBuild } from './whole-list-build.ts';

export interface EncodedCacheOptions {
  readonly encode?: EncodeResource;
  readonly generators?: ReadonlyMap<string, Generator>;
  /** PILOT_XDS_CACHE_SIZE: cached values, without lists. 0 disables the cache (PILOT_ENABLE_XDS_CACHE). */
  readonly maxEntries: number;
  /** PILOT_XDS_CACHE_BYTES. Default: unlimited. */
  readonly maxBytes?: number;
  /** Called when many values are built repeatedly because the cache is too small. */
  readonly onThrashing?: (figures: ThrashingFigures) => void;
  readonly onUnencodable?: (resource: EnvoyResource, error: unknown) => void;
  /** PILOT_ENABLE_CDS_CACHE and PILOT_ENABLE_RDS_CACHE; default true. */
  readonly cachesCds?: boolean;
  readonly cachesRds?: boolean;
  readonly maxChangesAtOnce?: number;
}

type AllGenerator = Extract<Generator, { scope: 'all' }>;
type NamedGenerator = Extract<Generator, { scope: 'named' }>;

const maxShortWholeList = 64;
/** If more objects and services change, lists are built ahead in pieces. */
const defaultMaxChangesAtOnce = 64;
/** If changed objects have more values, lists are built ahead in pieces. */
const maxChangeSizeAtOnce = 10_000;

export class EncodedCache {
  readonly #options: EncodedCacheOptions;
  readonly #encoder: ResourceEncoder;
  readonly #generators: ReadonlyMap<string, Generator>;
  readonly #resourceMemory: ResourceMemory;
  readonly #uncachedTypes: ReadonlySet<string>;
  readonly #sets = new ContextSets((typeUrl) => this.#isTypeCached(typeUrl));
  readonly #history = new ContextHistory();
  /** Lists that several shapes share, by the part of the shape on which they depend. */
  readonly #sharedLists = new WeakMap<PushContext, WeakValues<ResourceMap>>();
  readonly #names = new InternedNameLists();
  readonly #listsAhead: ListsAhead;
  readonly #models = new ModelLists();
  constructor(options: EncodedCacheOptions) {
    const { maxEntries, maxBytes, onThrashing: thrashing, cachesCds = true, cachesRds = true } = options;
    this.#options = options;
    this.#encoder = new ResourceEncoder(options.encode, options.onUnencodable);
    this.#generators = options.generators ?? generators;
    const types: [string, CachedType, boolean][] = [
      [clusterType, 'CDS', cachesCds],
      [routeType, 'RDS', cachesRds],
    ];
    const uncached = types.filter(([, , keeps]) => !keeps);
    this.#uncachedTypes = new Set(uncached.map(([typeUrl]) => typeUrl));
    this.#resourceMemory = new ResourceMemory({
      maxEntries,
      ...(maxBytes !== undefined && { maxBytes }),
      ...(thrashing && { onThrashing: thrashing }),
      uncachedTypes: new Set(uncached.map(([, type]) => type)),
    });
    this.#listsAhead = new ListsAhead({
      ...{ sets: this.#sets, names: this.#names, resourceMemory: this.#resourceMemory },
      encode: (resource) => this.#encoder.encode(resource, undefined),
    });
  }

  /** A cached list is counted as one hit. */
  get counts(): Readonly<MemoryCounts> {
    return this.#resourceMemory.counts;
  }

  get size(): number {
    return this.#resourceMemory.size;
  }

  get bytes(): number {
    return this.#resourceMemory.bytes;
  }

  get dependentConfigs(): number {
    return this.#resourceMemory.dependentConfigs;
  }

  /** A resource in several lists is counted once. */
  sizes(): Readonly<Record<string, { readonly entries: number; readonly bytes: number }>> {
    const setsByType = Map.groupBy(this.#sets.latestSets, ({ typeUrl }) => typeUrl);
    return Object.fromEntries(
      [...setsByType].map(([typeUrl, sets]) => {
        const distinctResources = new Set(sets.flatMap(({ list, base }) => [...(list ?? base ?? new Map()).values()]));
        // Resources may share chunks.
        const distinctFrames = new Set(
          [...distinctResources].flatMap((encodedResource) => frameOf(encodedResource, true)),
        );
        return [
          typeUrl,
          { entries: distinctResources.size, bytes: [...distinctFrames].reduce((sum, { length }) => sum + length, 0) },
        ];
      }),
    );
  }

  #generatorOf(typeUrl: string, { proxyless }: ProxyShape): Generator | undefined {
    return (proxyless ? grpcGenerators : this.#generators).get(typeUrl);
  }

  get(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): ResourceMap | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
    if (generator === undefined) return undefined;
    if (generator.scope === 'all') {
      const fullList = this.#getAll(context, typeUrl, shape, generator);
      return names === '*' ? fullList : selectFrom(fullList, names);
    }
    // Named types do not support wildcards: a proxy learns their names from other resources.
    return names === '*' ? noResources : this.#getNamed(context, typeUrl, shape, this.#names.intern(names), generator);
  }

  generate(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): readonly EnvoyResource[] {
    const generator = this.#generatorOf(typeUrl, shape);
    if (generator?.scope === 'all') {
      const generatedMessages = generator.build(shape, context, this.#resourceMemory);
      return names === '*' ? generatedMessages : generatedMessages.filter(({ name }) => names.includes(name));
    }
    return names === '*' ? [] : (generator?.build(shape, context, names, this.#resourceMemory) ?? []);
  }

  /** Returns a function that runs one step and returns whether more steps remain. `undefined` if the list is fast to build. */
  prepare(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
    const aheadBuild =
      generator && this.#isTypeCached(typeUrl)
        ? this.#listsAhead.buildListFor(context, typeUrl, shape, names, generator)
        : undefined;
    const buildRemaining =
      this.#prepareList(context, typeUrl, shape, names) ?? this.#prepareFullList(context, typeUrl, shape);
    if (aheadBuild === undefined) return buildRemaining;
    return () => aheadBuild.buildPiece() || buildRemaining?.() === true;
  }

  #prepareList(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): (() => boolean) | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
    if (generator?.scope !== 'named' || names === '*' || !this.#isTypeCached(typeUrl)) return undefined;
    const listBuild = this.#pendingBuildOf(context, typeUrl, shape, this.#names.intern(names), generator);
    return listBuild?.isLongBuild ? () => listBuild.step() : undefined;
  }

  /** Returns the build that must finish first. For a layered list, this is the build of the common list. */
  #pendingBuildOf(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    nameList: NameList,
    generator: NamedGenerator,
  ): ListBuild | undefined {
    const set = this.#sets.set(context, typeUrl, shape, nameList);
    if (set.list !== undefined) return undefined;
    const layer = sharedLayerOf(context, shape, generator);
    if (layer === undefined) return this.#listBuildFor(context, typeUrl, shape, nameList, set, generator);
    return this.#pendingBuildOf(context, typeUrl, layer.commonShape, this.#models.modelFor(nameList).model, generator);
  }

  carryOverSets(publication: ContextPublication & Partial<Pick<Publication, 'configs'>>): void {
    const { context, previous, forced, configs } = publication;
    const changedKeys = withGateways(publication);
    if (forced) this.#resourceMemory.clear();
    else this.#resourceMemory.invalidate(changedKeys);
    this.#history.add({ ...publication, changedKeys: new Set([...changedKeys, ...hostsOfRules(publication)]) });
    const { maxChangesAtOnce = defaultMaxChangesAtOnce } = this.#options;
    const isLargeChange = (): boolean =>
      changedKeys.size > maxChangesAtOnce ||
      changeSize(changedKeys, context, configs, maxChangeSizeAtOnce) >= maxChangeSizeAtOnce;
    const sets = this.#sets.setsOf(context, forced || previous === undefined || isLargeChange());
    const previousSets = previous === undefined ? undefined : this.#sets.cachedSetsOf(previous);
    if (previousSets === undefined || previous === undefined || forced) return;
    const number = this.#history.numberOf(previous)!;
    const keys = [...changedKeys].map(parseConfigKey);
    const visibilityByShape = new Map<ProxyShape, boolean>();
    const hasVisibilityChangedFor = (shape: ProxyShape): boolean => {
      const isVisible = visibilityByShape.get(shape) ?? changesVisibleServices(keys, shape, context, previous);
      visibilityByShape.set(shape, isVisible);
      return isVisible;
    };
    for (const [key, set] of previousSets.byKey) {
      const shape = set.shape.deref();
      if (shape === undefined || !isSetInUse(set)) continue;
      const { typeUrl } = set;
      const isUnaffected =
        set.list !== undefined &&
        (!keys.some(({ kind }) => mayAffectType(kind, typeUrl, shape.type)) ||
          this.#generatorOf(typeUrl, shape)?.isUntouched?.(keys, shape, context, previous));
      const next = isUnaffected ? set : outdatedSet(set, number, () => hasVisibilityChangedFor(shape));
      if (next !== undefined) sets.byKey.set(key, next);
    }
  }

  clear(context: PushContext | undefined): void {
    this.#resourceMemory.clear();
    if (context === undefined) return;
    this.#sets.delete(context);
    this.#sharedLists.delete(context);
  }

  #getAll(context: PushContext, typeUrl: string, shape: ProxyShape, generator: AllGenerator): ResourceMap {
    const set = this.#sets.set(context, typeUrl, shape, undefined);
    if (set.list !== undefined) return this.#countCacheHit(set.list);
    set.list = this.#buildLayeredOfAll(context, typeUrl, shape, generator, set.base);
    if (set.list !== undefined) return set.list;
    this.#wholeListBuildFor(context, typeUrl, shape, generator, set).finish();
    return set.list!;
  }

  #wholeListBuildFor(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: AllGenerator,
    set: CachedSet,
  ): WholeListBuild {
    const { wholeBuilds } = this.#sets.setsOf(context);
    const key = this.#sets.key(typeUrl, shape, undefined);
    const runningBuild = wholeBuilds.get(key);
    if (runningBuild !== undefined && !runningBuild.hasFailed) return runningBuild;
    const { build, building } = generator;
    const listBuild = new WholeListBuild({
      base: set.base,
      build: () => build(shape, context, this.#resourceMemory),
      buildSteps: building?.(shape, context, this.#resourceMemory),
      encode: (resource, previousResources) => this.#encoder.encode(resource, previousResources),
      onComplete: (list) => {
        set.list = list;
      },
    });
    if (this.#isTypeCached(typeUrl)) wholeBuilds.set(key, listBuild);
    return listBuild;
  }

  /** `undefined` if the list exists or is short. */
  #prepareFullList(context: PushContext, typeUrl: string, shape: ProxyShape): (() => boolean) | undefined {
    const generator = this.#generatorOf(typeUrl, shape);
    if (generator?.scope !== 'all' || generator.building === undefined || !this.#isTypeCached(typeUrl))
      return undefined;
    if (this.#sets.set(context, typeUrl, shape, undefined).list !== undefined) return undefined;
    const listShape = sharedLayerOf(context, shape, generator)?.commonShape ?? shape;
    const set = this.#sets.set(context, typeUrl, listShape, undefined);
    if (set.list !== undefined) return undefined;
    const isLongBuild =
      this.#sets.setsOf(context).buildsAhead || set.base === undefined || set.base.size > maxShortWholeList;
    if (!isLongBuild) return undefined;
    const listBuild = this.#wholeListBuildFor(context, typeUrl, listShape, generator, set);
    return () => listBuild.step();
  }

  #buildLayeredOfAll(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    generator: AllGenerator,
    previousResources: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#isTypeCached(typeUrl) ? sharedLayerOf(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { commonShape, subjects } = layer;
    const ownResources = generator.sharing!.buildDiffering(shape, commonShape, context, subjects, this.#resourceMemory);
    if (ownResources === undefined) return undefined;
    const baseList = this.#getAll(context, typeUrl, commonShape, generator);
    return this.#encoder.buildLayeredMap(
      baseList,
      ownResources.resources,
      ownResources.removedNames,
      previousResources,
    );
  }

  #buildLayeredOfNamed(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    nameList: NameList,
    generator: NamedGenerator,
    previousResources: ResourceMap | undefined,
  ): ResourceMap | undefined {
    const layer = this.#isTypeCached(typeUrl) ? sharedLayerOf(context, shape, generator) : undefined;
    if (layer === undefined) return undefined;
    const { model, addedNames, missingNames } = this.#models.modelFor(nameList);
    const { subjectOfName } = generator.narrowing!;
    const differingNames = [...layer.subjects].flatMap((subject) => nameList.namesOf(subject, subjectOfName));
    const names = [
      ...new Set([...addedNames, ...differingNames, ...generator.sharing!.alsoAbout(layer.subjects, nameList.names)]),
    ];
    const baseList = this.#getNamed(context, typeUrl, layer.commonShape, model, generator);
    const ownResources = names.length === 0 ? [] : generator.build(shape, context, names, this.#resourceMemory);
    const builtNames = new Set(ownResources.map(({ name }) => name));
    return this.#encoder.buildLayeredMap(
      baseList,
      ownResources,
      [...missingNames, ...names.filter((name) => !builtNames.has(name))],
      previousResources,
    );
  }

  #getNamed(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    nameList: NameList,
    generator: NamedGenerator,
  ): ResourceMap {
    const set = this.#sets.set(context, typeUrl, shape, nameList);
    if (set.list !== undefined) return this.#countCacheHit(set.list);
    set.list =
      this.#buildLayeredOfNamed(context, typeUrl, shape, nameList, generator, set.base) ??
      this.#listBuildFor(context, typeUrl, shape, nameList, set, generator)?.finish() ??
      this.#countCacheHit(set.list!);
    return set.list;
  }

  #listBuildFor(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    nameList: NameList,
    set: CachedSet,
    generator: NamedGenerator,
  ): ListBuild | undefined {
    if (set.list !== undefined) return undefined;
    const sharedList = this.#sharedListFor(context, typeUrl, shape, nameList, generator);
    const sharedResources = sharedList?.get();
    if (sharedResources !== undefined) {
      set.list = sharedResources;
      return undefined;
    }
    const { lists, builds, buildsAhead } = this.#sets.setsOf(context);
    const key = sharedList?.key ?? this.#sets.key(typeUrl, shape, nameList);
    const runningBuild = builds.get(key);
    if (runningBuild !== undefined) return runningBuild;
    const { base } = set;
    const shapeKey = this.#sets.key(typeUrl, shape, undefined);
    const changesSinceBase = base === undefined ? undefined : this.#history.changesSince(set.baseOf, context);
    const affectedList =
      // If the history does not reach back to the base, any name may be affected.
      changesSinceBase === undefined || changesSinceBase.forced
        ? nameList.names
        : affectedNames(
            changesSinceBase.changedKeys,
            nameList,
            { typeUrl, nodeType: shape.type, visibilityChanged: set.visibilityChanged },
            generator,
          );
    const listBuild = new ListBuild({
      names: affectedList,
      base,
      siblingResources: base === undefined ? lists.get(shapeKey) : undefined,
      build: (requestedNames) => generator.build(shape, context, requestedNames, this.#resourceMemory),
      ...(generator.building && {
        buildInSteps: (requestedNames) => generator.building!(shape, context, requestedNames, this.#resourceMemory),
        isHeavy: buildsAhead || base === undefined || shape.type === 'router',
      }),
      encode: (resource, previousResources) => this.#encoder.encode(resource, previousResources) ?? previousResources,
      onComplete: (list) => {
        set.list = list;
        sharedList?.set(list);
        if (this.#isTypeCached(typeUrl)) lists.set(shapeKey, list);
      },
    });
    if (this.#isTypeCached(typeUrl)) builds.set(key, listBuild);
    return listBuild;
  }

  #sharedListFor(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList, generator: Generator) {
    if (!this.#isTypeCached(typeUrl)) return undefined;
    const projection = generator.projection?.(shape, context);
    if (projection === undefined) return undefined;
    const lists = this.#sharedLists.get(context) ?? new WeakValues<ResourceMap>();
    this.#sharedLists.set(context, lists);
    const key = `${typeUrl} ${projection} ${names.key}`;
    return { key, get: () => lists.get(key), set: (list: ResourceMap) => void lists.set(key, list) };
  }

  #countCacheHit(list: ResourceMap): ResourceMap {
    this.#resourceMemory.counts.hits++;
    return list;
  }

  #isTypeCached(typeUrl: string): boolean {
    return this.#options.maxEntries > 0 && !this.#uncachedTypes.has(typeUrl);
  }
}

/** Adds changed network gateways, because every assignment depends on them. */
function withGateways({ context, previous, changedKeys }: ContextPublication): ReadonlySet<string> {
  if (previous === undefined || context.networkGateways === previous.networkGateways) return changedKeys;
  return new Set([...changedKeys, configKeyText({ kind: 'NetworkGateways', namespace: '', name: '' })]);
}

const noResources: ResourceMap = new Map();
