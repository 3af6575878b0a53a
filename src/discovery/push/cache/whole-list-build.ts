import type { EnvoyResource } from '../../../networking/index.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import type { ResourceMap } from './list-build.ts';

export interface WholeListBuildOptions {
  readonly base: ResourceMap | undefined;
  readonly build: () => readonly EnvoyResource[];
  /** Absent if building is fast. */
  readonly buildSteps: Iterator<undefined, readonly EnvoyResource[]> | undefined;
  /** Returns `undefined` if the resource cannot be encoded. */
  readonly encode: (resource: EnvoyResource, previous: EncodedResource | undefined) => EncodedResource | undefined;
  /** Called with the base if nothing differs. */
  readonly onComplete: (list: ResourceMap) => void;
}

export class WholeListBuild {
  readonly #steps: Iterator<void, void>;
  #hasFailed = false;

  constructor(options: WholeListBuildOptions) {
    this.#steps = listSteps(options);
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  step(): boolean {
    try {
      return this.#steps.next().done !== true;
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  finish(): void {
    while (this.step());
  }
}

const unchangedPerStep = 64;

function* listSteps({ base, build, buildSteps, encode, onComplete }: WholeListBuildOptions): Generator<void, void> {
  const list = new Map<string, EncodedResource>();
  let unchangedCount = 0;
  for (const resource of buildSteps === undefined ? build() : yield* pauseBetweenSteps(buildSteps)) {
    const previous = base?.get(resource.name);
    const encodedResource = encode(resource, previous) ?? previous;
    if (encodedResource !== undefined) list.set(resource.name, encodedResource);
    // Pauses less often for unchanged resources.
    if (encodedResource !== previous || ++unchangedCount % unchangedPerStep === 0) yield;
  }
  onComplete(areMapsEqual(base, list) ? base! : list);
}

function* pauseBetweenSteps<Result>(steps: Iterator<undefined, Result>): Generator<void, Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    yield;
  }
}

function areMapsEqual(a: ResourceMap | undefined, b: ResourceMap): boolean {
  if (a?.size !== b.size) return false;
  const names = a.keys();
  for (const [name, resource] of b) if (names.next().value !== name || a.get(name) !== resource) return false;
  return true;
}
