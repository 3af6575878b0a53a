/** Objects that changed since they were last read. Namespaces take turns, so that one with many changes delays no other. */
import type { KindName } from '../../../model/kinds/index.ts';
import type { ObjectKey } from '../store/object-store.ts';

/**
 * Maximum work of a reading after the first one, in milliseconds. The rest is read next: the changes of one namespace, however many, delay those of
 * another by about one reading.
 */
export const defaultMaxReadMs = 30;

export type UnreadObject = readonly [kind: KindName, key: ObjectKey];

export class UnreadObjects {
  /** By namespace and `kind key`, in order of changes. */
  readonly #namespaces = new Map<string, Map<string, UnreadObject>>();
  #size = 0;
  /** Objects that the current reading has taken, and those of them that changed again: one reading does not read an object twice. */
  readonly #taken = new Set<string>();
  #changedAgain: UnreadObject[] = [];

  get size(): number {
    return this.#size;
  }

  /** An object that is already present keeps its position. */
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

  /** Objects taken by the reading may be taken again if they changed since. */
  endReading(): void {
    const again = this.#changedAgain;
    this.#taken.clear();
    this.#changedAgain = [];
    for (const [kind, key] of again) this.add(kind, key);
  }

  *kinds(): Generator<KindName> {
    for (const objects of this.#namespaces.values()) for (const [kind] of objects.values()) yield kind;
  }
}
