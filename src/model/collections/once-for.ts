/** Caches a value per object, weakly: the value is dropped with the object. */

export function onceFor<Key extends object, Value extends NonNullable<unknown>>(
  make: (key: Key) => Value,
): (key: Key) => Value {
  const cache = new WeakMap<Key, Value>();
  return (key) => {
    let value = cache.get(key);
    if (value === undefined) {
      value = make(key);
      cache.set(key, value);
    }
    return value;
  };
}

/** The value is cached as long as both objects are alive. */
export function onceForPair<A extends object, B extends object, Value extends NonNullable<unknown>>(
  make: (a: A, b: B) => Value,
): (a: A, b: B) => Value {
  const ofFirst = onceFor((a: A) => onceFor((b: B) => make(a, b)));
  return (a, b) => ofFirst(a)(b);
}
