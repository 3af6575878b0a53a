/** Interns values by text, weakly: equal values share one object while other code references it. */

export class WeakValues<Value extends object> {
  readonly #values = new Map<string, WeakRef<Value>>();
  readonly #registry = new FinalizationRegistry<string>((key) => {
    // Another value may have replaced the collected one.
    if (this.#values.get(key)?.deref() === undefined) this.#values.delete(key);
  });

  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)?.deref();
  }

  set(key: string, value: Value): void {
    this.#values.set(key, new WeakRef(value));
    this.#registry.register(value, key);
  }
}

const numberByObject = new WeakMap<object, number>();
let lastNumber = 0;

/** Identifies a list by the identity of its objects; a replaced object changes the text. */
export function identityText(objects: readonly object[]): string {
  return objects.map(numberOf).join();
}

function numberOf(object: object): number {
  let number = numberByObject.get(object);
  if (number === undefined) {
    number = ++lastNumber;
    numberByObject.set(object, number);
  }
  return number;
}
