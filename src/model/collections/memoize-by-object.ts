/** Caches a value per object without retaining the object. */

export function memoizeByObject<Key extends object, Value extends NonNullable<unknown>>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const cache = new WeakMap<Key, Value>();
  return (key) => {
    let value = cache.get(key);
    if (value === undefined) {
      value = compute(key);
      cache.set(key, value);
    }
    return value;
  };
}

export function memoizeByPair<A extends object, B extends object, Value extends NonNullable<unknown>>(
  compute: (a: A, b: B) => Value,
): (a: A, b: B) => Value {
  const memoizedByFirst = memoizeByObject((a: A) => memoizeByObject((b: B) => compute(a, b)));
  return (a, b) => memoizedByFirst(a)(b);
}
