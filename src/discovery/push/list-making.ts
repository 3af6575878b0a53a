/** A list of resources that is made some names at a time, so that others have their turns while a long one is made. */
import type { Resource } from '../../networking/index.ts';
import type { EncodedResource } from '../ads/resource-source.ts';

/** How many at a time: a few milliseconds of work, also by code that runs for the first time. */
const namesAtATime = 16;

/** Resources that are made at once, without a rest. */
const shortList = 64;

export interface ListMakingOptions {
  /** The names that are to be made; all others are taken over from the base. */
  readonly names: readonly string[];
  /** What the list was before; absent: there was none. */
  readonly base: ResourceMap | undefined;
  /** Another list of the same moment, for the same shape, whose resources need not be made again. */
  readonly known: ResourceMap | undefined;
  readonly build: (names: readonly string[]) => readonly Resource[];
  /** Undefined: there is nothing to stand for its name. */
  readonly encode: (resource: Resource, before: EncodedResource | undefined) => EncodedResource | undefined;
  /** The list is whole. */
  readonly made: (list: ResourceMap) => void;
}

export class ListMaking {
  readonly #options: ListMakingOptions;
  /** Undefined: nothing is other than in the base. */
  #list: Map<string, EncodedResource> | undefined;
  #at = 0;
  #whole: ResourceMap | undefined;

  constructor(options: ListMakingOptions) {
    this.#options = options;
    if (options.base === undefined) this.#list = new Map();
  }

  /** Whether it takes long enough for others to have their turns meanwhile. */
  get isLong(): boolean {
    return this.#options.names.length - this.#at > shortList;
  }

  /** Makes some. @returns whether there is more to make */
  step(): boolean {
    const { names, made, base } = this.#options;
    if (this.#whole !== undefined) return false;
    this.#make(names.slice(this.#at, this.#at + namesAtATime));
    this.#at += namesAtATime;
    if (this.#at < names.length) return true;
    this.#whole = this.#list ?? base!;
    made(this.#whole);
    return false;
  }

  /** Makes what is left of it. */
  list(): ResourceMap {
    while (this.step());
    return this.#whole!;
  }

  #make(some: readonly string[]): void {
    const { base, known, build, encode } = this.#options;
    const unknown = known === undefined ? some : some.filter((name) => !this.#take(name, known.get(name)));
    const missing = new Set(base && unknown);
    for (const resource of build(unknown)) {
      const { name } = resource;
      if (this.#take(name, encode(resource, base?.get(name)))) missing.delete(name);
    }
    // What the name meant before is there no more.
    for (const name of missing) {
      if (base!.has(name)) this.#own().delete(name);
    }
  }

  #take(name: string, resource: EncodedResource | undefined): boolean {
    if (resource === undefined) return false;
    if (this.#options.base?.get(name) !== resource) this.#own().set(name, resource);
    return true;
  }

  #own(): Map<string, EncodedResource> {
    this.#list ??= new Map(this.#options.base);
    return this.#list;
  }
}

export type ResourceMap = ReadonlyMap<string, EncodedResource>;
