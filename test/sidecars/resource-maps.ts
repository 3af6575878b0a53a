/**
 * Resources of proxies as immutable maps. Proxies that received the same resources share a map, and results computed from a map are cached. A
 * response to 500 proxies costs one copy and 499 look-ups.
 */
import type { ResourceBatch, ResourceFacts } from './resource-batches.ts';

export type ResourceMap = ReadonlyMap<string, ResourceFacts>;

export interface NameList {
  readonly names: ReadonlySet<string>;
  readonly sorted: readonly string[];
}

export interface NameChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export const noResources: ResourceMap = new Map();
export const noNames: NameList = { names: new Set(), sorted: [] };

/** Caches the result for a pair of objects while both exist. */
function memoize<A extends object, B extends object, Result>(compute: (a: A, b: B) => Result): (a: A, b: B) => Result {
  const results = new WeakMap<A, WeakMap<B, { readonly result: Result }>>();
  return (a, b) => {
    const resultsOfA = results.get(a) ?? new WeakMap<B, { readonly result: Result }>();
    const cachedResult = resultsOfA.get(b);
    if (cachedResult !== undefined) return cachedResult.result;
    const result = compute(a, b);
    resultsOfA.set(b, { result });
    results.set(a, resultsOfA);
    return result;
  };
}

/** The map with the resources of a response; the same map if it already contains all of them. */
export const withBatch = memoize((map: ResourceMap, batch: ResourceBatch): ResourceMap => {
  const changedFacts = [...batch.values()].filter((facts) => !isSameResource(map.get(facts.name), facts));
  return changedFacts.length === 0
    ? map
    : new Map([...map, ...changedFacts.map((facts) => [facts.name, facts] as const)]);
});

/** Whether two maps contain the same resources with the same content. */
export const areEqual = memoize(
  (a: ResourceMap, b: ResourceMap): boolean =>
    a.size === b.size && [...a.values()].every((facts) => isSameResource(b.get(facts.name), facts)),
);

/** Names of resources that only one of the maps has, or that differ. */
export const differingNames = memoize((previous: ResourceMap, next: ResourceMap): readonly string[] => [
  ...[...next.values()].filter((facts) => !isSameResource(previous.get(facts.name), facts)).map(({ name }) => name),
  ...[...previous.keys()].filter((name) => !next.has(name)),
]);

/** The map without resources of these names; the same map if it has none of them. Results are cached for {@link sameList | same lists}. */
export const withoutNames = memoize((map: ResourceMap, names: readonly string[]): ResourceMap => {
  if (!names.some((name) => map.has(name))) return map;
  const removedNames = new Set(names);
  return new Map([...map].filter(([name]) => !removedNames.has(name)));
});

const maxCachedLists = 64;
const lists = new Map<string, readonly string[]>();

/** Returns one object for all lists of the same names, so that results computed from it are cached. */
export function sameList(names: readonly string[]): readonly string[] {
  const key = names.join('\n');
  const list = lists.get(key) ?? names;
  lists.delete(key);
  lists.set(key, list);
  if (lists.size > maxCachedLists) lists.delete(lists.keys().next().value!);
  return list;
}

/** Names that these clusters or listeners refer to. */
export const namesIn = (() => {
  const cachedLists = new WeakMap<ResourceMap, NameList>();
  return (map: ResourceMap): NameList => {
    const list = cachedLists.get(map) ?? listOf([...map.values()].flatMap(({ refersTo }) => refersTo));
    cachedLists.set(map, list);
    return list;
  };
})();

export const changeOf = memoize(
  (previous: NameList, next: NameList): NameChange => ({
    added: next.sorted.filter((name) => !previous.names.has(name)),
    removed: previous.sorted.filter((name) => !next.names.has(name)),
  }),
);

/** Whether the map has a resource for each name. */
export const coversNames = memoize((map: ResourceMap, { sorted }: NameList): boolean =>
  sorted.every((name) => map.has(name)),
);

export const resourceBytes = (batch: ResourceBatch): number =>
  [...batch.values()].reduce((sum, { bytes }) => sum + bytes, 0);

function listOf(texts: readonly string[]): NameList {
  const names = new Set(texts);
  return { names, sorted: [...names].sort() };
}

function isSameResource(previousFacts: ResourceFacts | undefined, nextFacts: ResourceFacts): boolean {
  return (
    previousFacts !== undefined &&
    previousFacts.digest === nextFacts.digest &&
    previousFacts.version === nextFacts.version
  );
}
