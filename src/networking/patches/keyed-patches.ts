/** Indexes patches by the name that they match, so that an object is compared only with patches that may match it. */
import type { ActivePatch } from './active-patch.ts';

interface IndexedPatch {
  readonly activePatch: ActivePatch;
  readonly patchIndex: number;
}

export class KeyedPatches {
  readonly #patchesForAny: readonly IndexedPatch[];
  readonly #patchesByKey: ReadonlyMap<string, readonly IndexedPatch[]>;
  readonly #unkeyedPatches: readonly ActivePatch[];

  /** @param keyOf returns `undefined` for a patch that may match any object */
  constructor(patches: readonly ActivePatch[], keyOf: (activePatch: ActivePatch) => string | undefined) {
    const indexedPatches = patches.map((activePatch, patchIndex) => ({ activePatch, patchIndex }));
    const groups = Map.groupBy(indexedPatches, ({ activePatch }) => keyOf(activePatch));
    this.#patchesForAny = groups.get(undefined) ?? [];
    this.#unkeyedPatches = this.#patchesForAny.map(({ activePatch }) => activePatch);
    groups.delete(undefined);
    this.#patchesByKey = groups as ReadonlyMap<string, readonly IndexedPatch[]>;
  }

  get hasKeys(): boolean {
    return this.#patchesByKey.size > 0;
  }

  patchesFor(keys: Iterable<string>): readonly ActivePatch[] {
    if (!this.hasKeys) return this.#unkeyedPatches;
    const keyedPatches = [...new Set(keys)].flatMap((key) => this.#patchesByKey.get(key) ?? []);
    if (keyedPatches.length === 0) return this.#unkeyedPatches;
    return [...this.#patchesForAny, ...keyedPatches]
      .sort((a, b) => a.patchIndex - b.patchIndex)
      .map(({ activePatch }) => activePatch);
  }
}

export function firstConditionKey(
  conditions: Readonly<Record<string, string | number | undefined>>,
): string | undefined {
  for (const [name, value] of Object.entries(conditions))
    if (value !== undefined && value !== '') return `${name} ${value}`;
  return undefined;
}
