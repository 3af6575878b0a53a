/** Some resources of a list of everything. */
import type { ResourceMap } from './list-making.ts';

const selections = new WeakMap<ResourceMap, WeakMap<readonly string[], ResourceMap>>();

/** Some of a list, the same map for those who ask with the same array. */
export function some(all: ResourceMap, names: readonly string[]): ResourceMap {
  const ofList = selections.get(all) ?? new WeakMap<readonly string[], ResourceMap>();
  selections.set(all, ofList);
  let chosen = ofList.get(names);
  if (chosen === undefined) {
    chosen = new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!]] : [])));
    ofList.set(names, chosen);
  }
  return chosen;
}
