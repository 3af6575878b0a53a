/** A list of resources that is made some names at a time, so that others have their turns while a long one is made. */
import type { Resource } from '../../../networking/index.ts';
import type { AheadPart } from '../../../networking/messages/resource.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';

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
  /** The same with rests; absent: it takes little. */
  readonly building?: ((names: readonly string[]) => Iterator<AheadPart | undefined, readonly Resource[]>) | undefined;
  /** One of the names may take long. */
  readonly isHeavy?: boolean;
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
  /** Those that are being made. */
  #some: Generator<void, void> | undefined;
  #whole: ResourceMap | undefined;

  constructor(options: ListMakingOptions) {
    this.#options = options;
    if (options.base === undefined) this.#list = new Map();
  }

  /** Whether it takes long enough for others to have their turns meanwhile. */
  get isLong(): boolean {
    const { names, isHeavy = false } = this.#options;
    return isHeavy ? this.#at < names.length : names.length - this.#at > shortList;
  }

  /** Makes some. @returns whether there is more to make */
  step(): boolean {
    const { names, made, base, isHeavy = false } = this.#options;
    if (this.#whole !== undefined) return false;
    const count = isHeavy ? 1 : namesAtATime;
    this.#some ??= this.#making(names.slice(this.#at, this.#at + count));
    try {
      if (this.#some.next().done !== true) return true;
    } catch (error) {
      // They are made once more for the next who asks.
      this.#some = undefined;
      throw error;
    }
    this.#some = undefined;
    this.#at += count;
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

  *#making(some: readonly string[]): Generator<void, void> {
    const { base, known, encode } = this.#options;
    const unknown = known === undefined ? some : some.filter((name) => !this.#take(name, known.get(name)));
    const missing = new Set(base && unknown);
    for (const resource of yield* this.#building(unknown)) {
      const { name } = resource;
      if (this.#take(name, encode(resource, base?.get(name)))) missing.delete(name);
    }
    // What the name meant before is there no more.
    for (const name of missing) {
      if (base!.has(name)) this.#own().delete(name);
    }
  }

  *#building(names: readonly string[]): Generator<void, readonly Resource[]> {
    const { build, building } = this.#options;
    if (building === undefined) return build(names);
    const steps = building(names);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (value !== undefined) encodeAhead(value);
      yield;
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

/** What cannot be encoded is met again, and told, when the resource that it is in is encoded. */
export function encodeAhead(part: AheadPart): void {
  try {
    void part.bytes;
  } catch {
    // As above.
  }
}

export type ResourceMap = ReadonlyMap<string, EncodedResource>;
