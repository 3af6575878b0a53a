/**
 * Immutable lists of names. Equal lists are usually the same object, so that results are computed once for all clients and comparisons are
 * cheap.
 */

type Names = readonly string[];

export const noNames: Names = [];

type NameListReading = {
  /** Without duplicates, star and empty name. */
  names: Names;
  /** Wildcard: requests all resources. */
  hasStar: boolean;
};

const readings = new WeakMap<Names, NameListReading>();
/** Cached results, kept while the lists are referenced. References from the cache itself do not count. */
type Results = WeakMap<Names, WeakMap<Names, WeakRef<Names>>>;

const unions: Results = new WeakMap();
const remainders: Results = new WeakMap();

export function readNames(list: Names): NameListReading {
  let cachedReading = readings.get(list);
  if (cachedReading === undefined) {
    const names = new Set(list);
    const hasStar = names.delete('*');
    names.delete('');
    cachedReading = { names: names.size === list.length ? list : [...names], hasStar };
    readings.set(list, cachedReading);
  }
  return cachedReading;
}

/** Returns the first list itself if it has all names. */
export function union(one: Names, other: Names): Names {
  if (one === other || other.length === 0) return one;
  if (one.length === 0) return other;
  return cachedResult(unions, one, other, () => {
    const addedNames = namesWithout(other, one);
    return addedNames.length === 0 ? one : [...one, ...addedNames];
  });
}

/** Returns the first list itself if it keeps all names. */
export function namesWithout(one: Names, other: Names): Names {
  if (one === other) return noNames;
  if (one.length === 0 || other.length === 0) return one;
  return cachedResult(remainders, one, other, () => {
    const removedNames = new Set(other);
    const remainingNames = one.filter((name) => !removedNames.has(name));
    if (remainingNames.length === 0) return noNames;
    return remainingNames.length === one.length ? one : remainingNames;
  });
}

export function intersection(one: Names, other: Names): Names {
  return namesWithout(one, namesWithout(one, other));
}

/** Whether two lists without duplicates have the same names in any order. */
export function haveSameNames(one: Names, other: Names): boolean {
  return one === other || (one.length === other.length && namesWithout(one, other).length === 0);
}

const lengths = new WeakMap<Names, number>();

export function charactersIn(list: Names): number {
  let length = lengths.get(list);
  if (length === undefined) {
    length = list.reduce((sum, name) => sum + name.length, 0);
    lengths.set(list, length);
  }
  return length;
}

function cachedResult(cache: Results, one: Names, other: Names, compute: () => Names): Names {
  let results = cache.get(one);
  if (results === undefined) {
    results = new WeakMap();
    cache.set(one, results);
  }
  let result = results.get(other)?.deref();
  if (result === undefined) {
    result = compute();
    results.set(other, new WeakRef(result));
  }
  return result;
}
