/** Patches by the one name that each looks for, so that a thing is asked of those that may be for it, and not of all. */
import type { HeldPatch } from './held-patch.ts';

interface Placed {
  readonly held: HeldPatch;
  readonly place: number;
}

export class KeyedPatches {
  readonly #forAny: readonly Placed[];
  readonly #byKey: ReadonlyMap<string, readonly Placed[]>;
  readonly #unkeyed: readonly HeldPatch[];

  /** @param keyOf undefined for a patch that may be for anything */
  constructor(patches: readonly HeldPatch[], keyOf: (held: HeldPatch) => string | undefined) {
    const placed = patches.map((held, place) => ({ held, place }));
    const groups = Map.groupBy(placed, ({ held }) => keyOf(held));
    this.#forAny = groups.get(undefined) ?? [];
    this.#unkeyed = this.#forAny.map(({ held }) => held);
    groups.delete(undefined);
    this.#byKey = groups as ReadonlyMap<string, readonly Placed[]>;
  }

  /** Whether any patch looks for a name. */
  get hasKeys(): boolean {
    return this.#byKey.size > 0;
  }

  /** The patches that may be for a thing with these keys, in their order. */
  for(keys: Iterable<string>): readonly HeldPatch[] {
    if (!this.hasKeys) return this.#unkeyed;
    const named = [...new Set(keys)].flatMap((key) => this.#byKey.get(key) ?? []);
    if (named.length === 0) return this.#unkeyed;
    return [...this.#forAny, ...named].sort((a, b) => a.place - b.place).map(({ held }) => held);
  }
}

/** A key of the first thing that is wanted; undefined when nothing is. Texts that are empty want nothing. */
export function keyOfFirst(wanted: Readonly<Record<string, string | number | undefined>>): string | undefined {
  for (const [what, value] of Object.entries(wanted))
    if (value !== undefined && value !== '') return `${what} ${value}`;
  return undefined;
}
