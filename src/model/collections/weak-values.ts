/** Values by text, each as long as somebody holds it: so that of equal things there is one, and none is kept for it. */

export class WeakValues<Value extends object> {
  readonly #values = new Map<string, WeakRef<Value>>();
  readonly #gone = new FinalizationRegistry<string>((key) => {
    // Another value may have come in the place of the one that is gone.
    if (this.#values.get(key)?.deref() === undefined) this.#values.delete(key);
  });

  /** How many values are held, those included that were until lately. */
  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)?.deref();
  }

  set(key: string, value: Value): void {
    this.#values.set(key, new WeakRef(value));
    this.#gone.register(value, key);
  }
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;

/** A text of the very objects in a list, another one when an object changed. */
export function identityText(objects: readonly object[]): string {
  return objects.map(numberOf).join();
}

function numberOf(object: object): number {
  let number = numbers.get(object);
  if (number === undefined) {
    number = ++lastNumber;
    numbers.set(object, number);
  }
  return number;
}
