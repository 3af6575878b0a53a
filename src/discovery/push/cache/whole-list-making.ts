import type { Resource } from '../../../networking/index.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import type { ResourceMap } from './list-making.ts';

export interface WholeListMakingOptions {
  readonly base: ResourceMap | undefined;
  readonly build: () => readonly Resource[];
  /** The same with rests; absent: it takes little. */
  readonly building: Iterator<undefined, readonly Resource[]> | undefined;
  /** Undefined: there is nothing to stand for its name. */
  readonly encode: (resource: Resource, before: EncodedResource | undefined) => EncodedResource | undefined;
  /** The list is whole: the base, if nothing in it is another. */
  readonly made: (list: ResourceMap) => void;
}

/** A list of all resources of a type, made and encoded one by one so that other work has its turns meanwhile. */
export class WholeListMaking {
  readonly #steps: Iterator<void, void>;
  #hasFailed = false;

  constructor(options: WholeListMakingOptions) {
    this.#steps = making(options);
  }

  /** It threw, and makes no list any more. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Makes some. @returns whether there is more to make */
  step(): boolean {
    try {
      return this.#steps.next().done !== true;
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  /** Makes what is left of it. */
  finish(): void {
    while (this.step());
  }
}

/** Resources that are as they were between two rests. */
const keptAtATime = 64;

function* making({ base, build, building, encode, made }: WholeListMakingOptions): Generator<void, void> {
  const list = new Map<string, EncodedResource>();
  let kept = 0;
  for (const resource of building === undefined ? build() : yield* withRests(building)) {
    const before = base?.get(resource.name);
    const encoded = encode(resource, before) ?? before;
    if (encoded !== undefined) list.set(resource.name, encoded);
    // What is as it was takes little.
    if (encoded !== before || ++kept % keptAtATime === 0) yield;
  }
  made(isSameMap(base, list) ? base! : list);
}

function* withRests<Result>(steps: Iterator<undefined, Result>): Generator<void, Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    yield;
  }
}

function isSameMap(a: ResourceMap | undefined, b: ResourceMap): boolean {
  if (a?.size !== b.size) return false;
  const names = a.keys();
  for (const [name, resource] of b) if (names.next().value !== name || a.get(name) !== resource) return false;
  return true;
}
