import type { EnvoyResource } from '../../../networking/index.ts';
import type { PartToEncode } from '../../../networking/messages/resource.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';

/** Takes a few milliseconds, even before the code is optimized. */
const namesPerStep = 16;

const maxShortList = 64;

export interface ListBuildOptions {
  /** Names to build. All others are reused from the base. */
  readonly names: readonly string[];
  readonly base: ResourceMap | undefined;
  /** List of the same shape whose resources are reused. */
  readonly siblingResources: ResourceMap | undefined;
  readonly build: (names: readonly string[]) => readonly EnvoyResource[];
  /** Absent if building is fast. */
  readonly buildInSteps?:
    | ((names: readonly string[]) => Iterator<PartToEncode | undefined, readonly EnvoyResource[]>)
    | undefined;
  readonly isHeavy?: boolean;
  /** Returns `undefined` if the resource cannot be encoded. */
  readonly encode: (resource: EnvoyResource, previous: EncodedResource | undefined) => EncodedResource | undefined;
  readonly onComplete: (list: ResourceMap) => void;
}

export class ListBuild {
  readonly #options: ListBuildOptions;
  /** `undefined` while the list is equal to the base. */
  #list: Map<string, EncodedResource> | undefined;
  #position = 0;
  #batch: Generator<void, void> | undefined;
  #complete: ResourceMap | undefined;

  constructor(options: ListBuildOptions) {
    this.#options = options;
    if (options.base === undefined) this.#list = new Map();
  }

  get isLongBuild(): boolean {
    const { names, isHeavy = false } = this.#options;
    return isHeavy ? this.#position < names.length : names.length - this.#position > maxShortList;
  }

  step(): boolean {
    const { names, onComplete, base, isHeavy = false } = this.#options;
    if (this.#complete !== undefined) return false;
    const count = isHeavy ? 1 : namesPerStep;
    this.#batch ??= this.#buildBatch(names.slice(this.#position, this.#position + count));
    try {
      if (this.#batch.next().done !== true) return true;
    } catch (error) {
      this.#batch = undefined;
      throw error;
    }
    this.#batch = undefined;
    this.#position += count;
    if (this.#position < names.length) return true;
    this.#complete = this.#list ?? base!;
    onComplete(this.#complete);
    return false;
  }

  finish(): ResourceMap {
    while (this.step());
    return this.#complete!;
  }

  *#buildBatch(batch: readonly string[]): Generator<void, void> {
    const { base, siblingResources, encode } = this.#options;
    const missingFromSibling =
      siblingResources === undefined
        ? batch
        : batch.filter((name) => !this.#setResource(name, siblingResources.get(name)));
    const missingNames = new Set(base && missingFromSibling);
    for (const resource of yield* this.#runBuild(missingFromSibling)) {
      const { name } = resource;
      if (this.#setResource(name, encode(resource, base?.get(name)))) missingNames.delete(name);
    }
    for (const name of missingNames) {
      if (base!.has(name)) this.#writableList().delete(name);
    }
  }

  *#runBuild(names: readonly string[]): Generator<void, readonly EnvoyResource[]> {
    const { build, buildInSteps } = this.#options;
    if (buildInSteps === undefined) return build(names);
    const steps = buildInSteps(names);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (value !== undefined) encodePart(value);
      yield;
    }
  }

  #setResource(name: string, resource: EncodedResource | undefined): boolean {
    if (resource === undefined) return false;
    if (this.#options.base?.get(name) !== resource) this.#writableList().set(name, resource);
    return true;
  }

  #writableList(): Map<string, EncodedResource> {
    this.#list ??= new Map(this.#options.base);
    return this.#list;
  }
}

/** An error is reported later, with the resource that contains the part. */
export function encodePart(partToEncode: PartToEncode): void {
  try {
    void partToEncode.bytes;
  } catch {
    // The error is reported later.
  }
}

export type ResourceMap = ReadonlyMap<string, EncodedResource>;
