/**
 * Lists of names as values. Lists are never changed, and those that are equal are mostly one list: what follows from them
 * is worked out once for all clients that bring them, and comparing them costs nothing.
 */

type Names = readonly string[];

export const noNames: Names = [];

/** What a list from the wire says. */
type Reading = {
  /** The names in it, each once: neither the star nor the empty name is one. */
  names: Names;
  /** It asks for everything. */
  hasStar: boolean;
};

const readings = new WeakMap<Names, Reading>();
/** What followed, as long as somebody holds it: that its parts are held is no reason, or no list would ever go. */
type Results = WeakMap<Names, WeakMap<Names, WeakRef<Names>>>;

const unions: Results = new WeakMap();
const remainders: Results = new WeakMap();

/** Reads a list as a client sent it. */
export function readNames(list: Names): Reading {
  let reading = readings.get(list);
  if (reading === undefined) {
    const names = new Set(list);
    const hasStar = names.delete('*');
    names.delete('');
    reading = { names: names.size === list.length ? list : [...names], hasStar };
    readings.set(list, reading);
  }
  return reading;
}

/** The names of the one, then those that only the other has; the very list when there are none. */
export function union(one: Names, other: Names): Names {
  if (one === other || other.length === 0) return one;
  if (one.length === 0) return other;
  return once(unions, one, other, () => {
    const added = without(other, one);
    return added.length === 0 ? one : [...one, ...added];
  });
}

/** The names of the one that the other has not; the very list when those are all. */
export function without(one: Names, other: Names): Names {
  if (one === other) return noNames;
  if (one.length === 0 || other.length === 0) return one;
  return once(remainders, one, other, () => {
    const removed = new Set(other);
    const left = one.filter((name) => !removed.has(name));
    if (left.length === 0) return noNames;
    return left.length === one.length ? one : left;
  });
}

/** The names of the one that the other has as well; the very list when those are all. */
export function within(one: Names, other: Names): Names {
  return without(one, without(one, other));
}

/** Whether they hold the same names, in whatever order. Neither holds one twice. */
export function isSameNames(one: Names, other: Names): boolean {
  return one === other || (one.length === other.length && without(one, other).length === 0);
}

const lengths = new WeakMap<Names, number>();

/** How long the names of a list are together. */
export function charactersIn(list: Names): number {
  let length = lengths.get(list);
  if (length === undefined) {
    length = list.reduce((sum, name) => sum + name.length, 0);
    lengths.set(list, length);
  }
  return length;
}

function once(known: Results, one: Names, other: Names, work: () => Names): Names {
  let results = known.get(one);
  if (results === undefined) {
    results = new WeakMap();
    known.set(one, results);
  }
  let result = results.get(other)?.deref();
  if (result === undefined) {
    result = work();
    results.set(other, new WeakRef(result));
  }
  return result;
}
