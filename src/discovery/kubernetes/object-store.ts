/**
 * What is known of one kind of object. A whole set is held apart while it comes, and takes the place of what there was at once: its
 * difference is told, with what was deleted and nobody saw. Rules only: who asks what of a server is decided elsewhere.
 */
import { isEarlier } from '../../../machines/discovery/kubernetes/informer-rules.ts';
import type { KubernetesObject, WatchEvent } from './api-server.ts';

/** `namespace/name`; of what is in no namespace, `/name`. */
export type ObjectKey = string;

/**
 * What became of one object. One that was deleted and made again under its name, seen or not, is a `delete` and an `add`: it is
 * another one.
 */
export type ObjectChange =
  | { readonly event: 'add'; readonly key: ObjectKey; readonly object: KubernetesObject }
  | {
      readonly event: 'update';
      readonly key: ObjectKey;
      readonly object: KubernetesObject;
      readonly previous: KubernetesObject;
    }
  /** `previous` is what was known last; what it was in its last moment may never have been seen. */
  | { readonly event: 'delete'; readonly key: ObjectKey; readonly previous: KubernetesObject };

export class ObjectStore {
  #objects = new Map<ObjectKey, KubernetesObject>();
  #apart = new Map<ObjectKey, KubernetesObject>();

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): KubernetesObject | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<KubernetesObject> {
    return this.#objects.values();
  }

  entries(): IterableIterator<[ObjectKey, KubernetesObject]> {
    return this.#objects.entries();
  }

  /** A whole set begins to come: what is left of another is of no use. */
  beginSet(): void {
    this.#apart = new Map();
  }

  /** @returns how many have come */
  holdApart(object: KubernetesObject): number {
    this.#apart.set(keyOf(object), object);
    return this.#apart.size;
  }

  /** The set that was held apart is what there is. What a server that was restored has may be older: it counts. */
  replace(): ObjectChange[] {
    const before = this.#objects;
    this.#objects = this.#apart;
    this.#apart = new Map();
    const changes: ObjectChange[] = [];
    for (const [key, previous] of before) if (!this.#objects.has(key)) changes.push({ event: 'delete', key, previous });
    for (const [key, object] of this.#objects) changes.push(...changesOf(key, before.get(key), object));
    return changes;
  }

  /** There is nothing, and nothing comes. */
  clear(): ObjectChange[] {
    this.#apart = new Map();
    return this.replace();
  }

  /** What an event of a watch makes of it. What is older than what is known of the same object is no news. */
  apply({ type, object }: Exclude<WatchEvent, { type: 'ERROR' | 'BOOKMARK' }>): ObjectChange[] {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous !== undefined && isSame(previous, object) && isEarlier(versionOf(object), versionOf(previous)))
      return [];
    if (type === 'DELETED') {
      // Of one that has taken its place since, it says nothing.
      if (previous === undefined || !isSame(previous, object)) return [];
      this.#objects.delete(key);
      return [{ event: 'delete', key, previous }];
    }
    this.#objects.set(key, object);
    return changesOf(key, previous, object);
  }
}

export function keyOf({ metadata: { namespace = '', name } }: KubernetesObject): ObjectKey {
  return `${namespace}/${name}`;
}

function changesOf(key: ObjectKey, previous: KubernetesObject | undefined, object: KubernetesObject): ObjectChange[] {
  if (previous === undefined) return [{ event: 'add', key, object }];
  if (!isSame(previous, object)) {
    return [
      { event: 'delete', key, previous },
      { event: 'add', key, object },
    ];
  }
  return versionOf(previous) === versionOf(object) ? [] : [{ event: 'update', key, object, previous }];
}

const isSame = (one: KubernetesObject, other: KubernetesObject): boolean => one.metadata.uid === other.metadata.uid;
const versionOf = ({ metadata: { resourceVersion = '' } }: KubernetesObject): string => resourceVersion;
