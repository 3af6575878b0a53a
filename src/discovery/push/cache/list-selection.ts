import type { ResourceMap } from './list-build.ts';

const selections = new WeakMap<ResourceMap, WeakMap<readonly string[], ResourceMap>>();

/** Returns the same map for the same list and array. */
export function selectFrom(fullList: ResourceMap, names: readonly string[]): ResourceMap {
  const selectionsOfList = selections.get(fullList) ?? new WeakMap<readonly string[], ResourceMap>();
  selections.set(fullList, selectionsOfList);
  let selection = selectionsOfList.get(names);
  if (selection === undefined) {
    selection = new Map(names.flatMap((name) => (fullList.has(name) ? [[name, fullList.get(name)!]] : [])));
    selectionsOfList.set(names, selection);
  }
  return selection;
}
