import type { Statechart } from '../../runtime/trace/statechart.ts';

const noTags: ReadonlySet<string> = new Set();

export class StateTags {
  /** By machine and by path. */
  readonly #tags = new Map<string, ReadonlyMap<string, ReadonlySet<string>>>();

  constructor(machines: readonly Statechart[]) {
    for (const { id, states } of machines) {
      const tagsByPath = new Map<string, ReadonlySet<string>>();
      for (const { path, parent, tags = [] } of states) {
        const parentTags = parent === undefined ? noTags : (tagsByPath.get(states[parent]!.path) ?? noTags);
        tagsByPath.set(path, new Set([...parentTags, ...tags]));
      }
      this.#tags.set(id, tagsByPath);
    }
  }

  /** @param state as in traces: a path, or one for each region, joined with ` | ` */
  tagsOf(machine: string | undefined, state: string): ReadonlySet<string> {
    const tagsByPath = machine === undefined ? undefined : this.#tags.get(machine);
    if (tagsByPath === undefined || state === '') return noTags;
    const regions = state.split(' | ').map((path) => tagsByPath.get(path) ?? noTags);
    return regions.length === 1 ? regions[0]! : new Set(regions.flatMap((tags) => [...tags]));
  }

  isKnownTag(machine: string, tag: string): boolean {
    return [...(this.#tags.get(machine)?.values() ?? [])].some((tags) => tags.has(tag));
  }
}
