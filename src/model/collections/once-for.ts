/** What is found out once for an object, and is known as long as that object is there. */

/** @param make called once for each object */
export function onceFor<Key extends object, Value extends NonNullable<unknown>>(
  make: (key: Key) => Value,
): (key: Key) => Value {
  const made = new WeakMap<Key, Value>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      value = make(key);
      made.set(key, value);
    }
    return value;
  };
}

/** @param make called once for the two together; the answer is kept as long as both are there */
export function onceForPair<A extends object, B extends object, Value extends NonNullable<unknown>>(
  make: (a: A, b: B) => Value,
): (a: A, b: B) => Value {
  const ofFirst = onceFor((a: A) => onceFor((b: B) => make(a, b)));
  return (a, b) => ofFirst(a)(b);
}
