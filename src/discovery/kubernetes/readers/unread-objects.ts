/** Reads alternate between namespaces, so that many changes in one do not delay others. */
import type { KindName } from '../../../model/kinds/index.ts';
import type { ObjectKey } from '../store/object-store.ts';

/** Maximum duration of a read after the first one, in milliseconds. */
export const defaultMaxReadMs = 30;

export type UnreadObject = readonly [kind: KindName, key: ObjectKey];

export class UnreadObjects {
  readonly #namespaces = new Map<string, Map<string, UnreadObject>>();
  #size = 0;
  /** Objects of the current read, and those that changed again during it. A read does not read an object twice. */
  readonly #takenKeys = new Set<string>();
  #repeatedChanges: UnreadObject[] = [];

  get size(): number {
    return this.#size;
  }

  /** An object that is already in the queue keeps its position. */
  add(kind: KindName, key: ObjectKey): void {
    const id = `${kind} ${key}`;
    if (this.#takenKeys.has(id)) {
      this.#repeatedChanges.push([kind, key]);
      return;
    }
    const namespace = key.slice(0, key.indexOf('/'));
    const objects = this.#namespaces.get(namespace) ?? new Map<string, UnreadObject>();
    this.#namespaces.set(namespace, objects);
    if (objects.has(id)) return;
    objects.set(id, [kind, key]);
    this.#size++;
  }

  *drainRound(): Generator<UnreadObject> {
    for (const [namespace, objects] of [...this.#namespaces]) {
      const [first] = objects;
      if (first === undefined) continue;
      const [id, object] = first;
      objects.delete(id);
      this.#size--;
      if (objects.size === 0) this.#namespaces.delete(namespace);
      this.#takenKeys.add(id);
      yield object;
    }
  }

  endReading(): void {
    const repeatedChanges = this.#repeatedChanges;
    this.#takenKeys.clear();
    this.#repeatedChanges = [];
    for (const [kind, key] of repeatedChanges) this.add(kind, key);
  }

  *kinds(): Generator<KindName> {
    for (const objects of this.#namespaces.values()) for (const [kind] of objects.values()) yield kind;
  }
}
