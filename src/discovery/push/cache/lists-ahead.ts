/** Builds shared parts of long lists before the lists themselves. */
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { EnvoyResource, type Generator } from '../../../networking/index.ts';
import { AheadBuild } from './ahead-build.ts';
import type { ContextSets } from './context-sets.ts';
import { encodePart } from './list-build.ts';
import type { InternedNameLists } from './name-list.ts';
import type { ResourceMemory } from './resource-memory.ts';
import { sharedLayerOf } from './shared-layer.ts';

/** A list with a resource of more chunks is built ahead. A chunk has about twenty parts. */
const manyChunks = 64;

/** One build for each type, namespace of proxies, and set of route configuration names. */
const maxAheadBuilds = 1_024;

export interface ListsAheadParts {
  readonly sets: ContextSets;
  readonly names: InternedNameLists;
  readonly resourceMemory: ResourceMemory;
  readonly encode: (resource: EnvoyResource) => unknown;
}

export class ListsAhead {
  readonly #listParts: ListsAheadParts;

  constructor(listParts: ListsAheadParts) {
    this.#listParts = listParts;
  }

  buildListFor(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): AheadBuild | undefined {
    const { sets, resourceMemory, encode } = this.#listParts;
    const { buildsAhead, aheadBuilds } = sets.setsOf(context);
    if (generator.precompute === undefined) return undefined;
    if (generator.scope === 'named' && names === '*') return undefined;
    const isLongBuild = buildsAhead || this.#isNew(context, typeUrl, shape, names, generator);
    if (!isLongBuild && !this.#hasManyChunks(context, typeUrl, shape, names, generator)) return undefined;
    const projection = generator.projection?.(shape, context) ?? '';
    const key = `${shape.type} ${typeUrl} ${projection} ${names === '*' ? '' : names.join()}`;
    let build = aheadBuilds.get(key);
    if (build === undefined) {
      if (aheadBuilds.size >= maxAheadBuilds) return undefined;
      const listParts = generator.precompute(shape, context, resourceMemory, names === '*' ? [] : names);
      build = new AheadBuild(listParts, (partToEncode) => {
        if (partToEncode instanceof EnvoyResource) encode(partToEncode);
        else encodePart(partToEncode);
      });
      aheadBuilds.set(key, build);
    }
    return build.isDone ? undefined : build;
  }

  #isNew(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): boolean {
    const isNewFor = (proxyShape: ProxyShape): boolean => {
      const list = generator.scope === 'all' || names === '*' ? undefined : this.#listParts.names.intern(names);
      const { list: builtList, base } = this.#listParts.sets.set(context, typeUrl, proxyShape, list);
      return builtList === undefined && base === undefined;
    };
    if (!isNewFor(shape)) return false;
    const layer = generator.scope === 'all' ? sharedLayerOf(context, shape, generator) : undefined;
    return layer === undefined || isNewFor(layer.commonShape);
  }

  #hasManyChunks(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): boolean {
    if (generator.scope !== 'named' || names === '*') return false;
    const { list, base } = this.#listParts.sets.set(context, typeUrl, shape, this.#listParts.names.intern(names));
    return list === undefined && [...(base?.values() ?? [])].some(({ tailChunks }) => tailChunks.length > manyChunks);
  }
}
