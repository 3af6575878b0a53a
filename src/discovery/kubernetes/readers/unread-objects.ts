/** Objects that have changed and were not read since. Namespaces have their turns: one with many changes delays no other one. */
import type { KindName } from '../../../model/kinds/index.ts';
import type { ObjectKey } from '../store/object-store.ts';

/**
 * Work of one reading, in milliseconds, after the first one. What is left is read next: objects of one namespace, however many change,
 * delay those of another one by about one reading.
 */
export const defaultMaxReadMs = 30;

export type UnreadObject = readonly [kind: KindName, key: ObjectKey];

export class UnreadObjects {
  /** By namespace and `kind key`, in the order of the changes. */
  readonly #namespaces = new Map<string, Map<string, UnreadObject>>();
  #size = 0;
  /** What the present reading has taken, and which of it has changed again: one reading does not read an object twice. */
  readonly #taken = new Set<string>();
  #changedAgain: UnreadObject[] = [];

  /** Objects that the present reading may take. */
  get size(): number {
    return this.#size;
  }

  /** An object that is there already keeps its place. */
  add(kind: KindName, key: ObjectKey): void {
    const id = `${kind} ${key}`;
    if (this.#taken.has(id)) {
      this.#changedAgain.push([kind, key]);
      return;
    }
    const namespace = key.slice(0, key.indexOf('/'));
    const objects = this.#namespaces.get(namespace) ?? new Map<string, UnreadObject>();
    this.#namespaces.set(namespace, objects);
    if (objects.has(id)) return;
    objects.set(id, [kind, key]);
    this.#size++;
  }

  /** Takes the first object of each namespace. */
  *takeRound(): Generator<UnreadObject> {
    for (const [namespace, objects] of [...this.#namespaces]) {
      const [first] = objects;
      if (first === undefined) continue;
      const [id, object] = first;
      objects.delete(id);
      this.#size--;
      if (objects.size === 0) this.#namespaces.delete(namespace);
      this.#taken.add(id);
      yield object;
    }
  }

  /** Objects that were taken may be taken again, if they have changed since. */
  endReading(): void {
    const again = this.#changedAgain;
    this.#taken.clear();
    this.#changedAgain = [];
    for (const [kind, key] of again) this.add(kind, key);
  }

  /** Kinds of the objects. */
  *kinds(): Generator<KindName> {
    for (const objects of this.#namespaces.values()) for (const [kind] of objects.values()) yield kind;
  }
}
