/** Builds parts of long lists before the lists, piece by piece, so that other work has its turns. */
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { type Generator, Resource } from '../../../networking/index.ts';
import type { ContextSets } from './context-sets.ts';
import { layerOf } from './layer.ts';
import { encodeAhead } from './list-making.ts';
import { MakingAhead } from './making-ahead.ts';
import type { NameLists } from './name-list.ts';
import type { ResourceMemory } from './resource-memory.ts';

/** Chunks of an encoded resource, of some twenty parts each: what has more is not made at once. */
const manyChunks = 64;

/** Types, namespaces of proxies, names of route configurations. */
const mostAhead = 1_024;

export interface ListsAheadParts {
  readonly sets: ContextSets;
  readonly names: NameLists;
  readonly memory: ResourceMemory;
  readonly encode: (resource: Resource) => unknown;
}

export class ListsAhead {
  readonly #parts: ListsAheadParts;

  constructor(parts: ListsAheadParts) {
    this.#parts = parts;
  }

  /** @returns `undefined` if nothing of the list is worth building ahead, or it is built */
  making(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
    generator: Generator,
  ): MakingAhead | undefined {
    const { sets, memory, encode } = this.#parts;
    const { makesAhead, ahead } = sets.of(context);
    if (generator.ahead === undefined) return undefined;
    if (generator.scope === 'named' && names === '*') return undefined;
    const isLong = makesAhead || this.#isNew(context, typeUrl, shape, names, generator);
    if (!isLong && !this.#hasManyChunks(context, typeUrl, shape, names, generator)) return undefined;
    const projection = generator.projection?.(shape, context) ?? '';
    const key = `${shape.type} ${typeUrl} ${projection} ${names === '*' ? '' : names.join()}`;
    let making = ahead.get(key);
    if (making === undefined) {
      // Names of clients are without end, what they share is not.
      if (ahead.size >= mostAhead) return undefined;
      const parts = generator.ahead(shape, context, memory, names === '*' ? [] : names);
      making = new MakingAhead(parts, (part) => {
        if (part instanceof Resource) encode(part);
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
      const list = generator.scope === 'all' || names === '*' ? undefined : this.#parts.names.of(names);
      const { list: made, base } = this.#parts.sets.set(context, typeUrl, of, list);
      return made === undefined && base === undefined;
    };
    if (!isNewFor(shape)) return false;
    const layer = generator.scope === 'all' ? layerOf(context, shape, generator) : undefined;
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
    const { list, base } = this.#parts.sets.set(context, typeUrl, shape, this.#parts.names.of(names));
    return list === undefined && [...(base?.values() ?? [])].some(({ rest }) => rest.length > manyChunks);
  }
}
