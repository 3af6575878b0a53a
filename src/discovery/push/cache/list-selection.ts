import type { ResourceMap } from './list-build.ts';

const selections = new WeakMap<ResourceMap, WeakMap<readonly string[], ResourceMap>>();

/** Returns the same map for the same list and array. */
export function selectFrom(all: ResourceMap, names: readonly string[]): ResourceMap {
  const selectionsOfList = selections.get(all) ?? new WeakMap<readonly string[], ResourceMap>();
  selections.set(all, selectionsOfList);
  let selection = selectionsOfList.get(names);
  if (selection === undefined) {
    selection = new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!]] : [])));
    selectionsOfList.set(names, selection);
  }
  return selection;
}
