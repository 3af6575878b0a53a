/**
 * What is known of one kind of object. A whole set is held apart while it comes, and takes the place of what there was at once: its
 * difference is told, with what was deleted and nobody saw. Rules only: who asks what of a server is decided elsewhere.
 */
import { isEarlier } from '../../../../machines/discovery/kubernetes/informer-rules.ts';
import type { KubernetesObject, WatchEvent } from '../api-server.ts';
import { heapBytesOf } from './heap-size.ts';
import { maxNamedRefusals, type NamespaceShares } from './namespace-shares.ts';

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

export interface ObjectStoreOptions {
  /** What the objects of a namespace may take; absent, or of objects in no namespace: as much as there is. */
  readonly shares?: NamespaceShares;
  /** An object was refused for the first time in this version. */
  readonly refused?: (key: ObjectKey, reason: string) => void;
  /** Which objects are kept; absent: all. Of others nothing is told. */
  readonly keeps?: (key: ObjectKey) => boolean;
  /** A reader may know an object that the store does not have: its deletion is told as well. */
  readonly isOnDemand?: boolean;
}

/** Of what a namespace may take: above it, freed room is not worth a list of the namespace. */
const refillBelow = 3 / 4;

/** Why only the metadata of an object are kept: it exceeds a limit. */
const refusal = Symbol('refusal');

/** Why the object was refused, with the limit; undefined: it was not. */
export function refusalOf(object: KubernetesObject): string | undefined {
  return (object as { readonly [refusal]?: string })[refusal];
}

/** In the place of an object that exceeds a limit: which one it was, and why. */
export function refusedObject(object: KubernetesObject, reason: string): KubernetesObject {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata;
  const known = Object.entries({ name, namespace, uid, resourceVersion, generation, creationTimestamp }).filter(
    ([, value]) => value !== undefined,
  );
  return {
    ...(apiVersion !== undefined && { apiVersion }),
    ...(kind !== undefined && { kind }),
    metadata: Object.fromEntries(known) as unknown as KubernetesObject['metadata'],
    [refusal]: reason,
  };
}

export class ObjectStore {
  readonly #options: ObjectStoreOptions;
  #objects = new ObjectSet();
  #apart = new ObjectSet();
  #deletedInRefill: Set<ObjectKey> | undefined;

  constructor(options: ObjectStoreOptions = {}) {
    this.#options = options;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Objects that exceed a limit, by namespace: those that are named and those that are only counted. */
  get refused(): ReadonlyMap<string, number> {
    return this.#objects.refused;
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
    this.#apart = new ObjectSet();
  }

  /** @returns how many have come */
  holdApart(object: KubernetesObject): number {
    const key = keyOf(object);
    if (this.#options.keeps?.(key) !== false) this.#put(this.#apart, key, object);
    return this.#apart.size;
  }

  /** The set that was held apart is what there is. What a server that was restored has may be older: it counts. */
  replace(): ObjectChange[] {
    const before = this.#objects;
    this.#objects = this.#apart;
    this.#apart = new ObjectSet();
    for (const [namespace, bytes] of before.bytes) this.#options.shares?.add(namespace, -bytes);
    for (const [namespace, bytes] of this.#objects.bytes) this.#options.shares?.add(namespace, bytes);
    const changes: ObjectChange[] = [];
    for (const [key, previous] of before.entries())
      if (this.#objects.get(key) === undefined) changes.push({ event: 'delete', key, previous });
    for (const [key, object] of this.#objects.entries()) changes.push(...changesOf(key, before.get(key), object));
    return changes;
  }

  /** There is nothing, and nothing comes. */
  clear(): ObjectChange[] {
    this.#apart = new ObjectSet();
    return this.replace();
  }

  /** A reader has found an object that no event has told of yet: its deletion is told from now on. Only its metadata are kept. */
  note({ apiVersion, kind, metadata }: KubernetesObject): void {
    const key = keyOf({ metadata });
    if (this.#objects.get(key) !== undefined || this.#options.keeps?.(key) === false) return;
    const { name, namespace, uid, resourceVersion } = metadata;
    const known = { name, namespace, uid, resourceVersion } as KubernetesObject['metadata'];
    this.#put(this.#objects, key, { apiVersion, kind, metadata: known } as KubernetesObject);
  }

  /** The objects of the namespace are kept no more. @returns what to tell */
  drop(namespace: string): ObjectChange[] {
    const changes: ObjectChange[] = [];
    for (const [key, previous] of this.#objects.entries())
      if (namespaceOf(key) === namespace) changes.push({ event: 'delete', key, previous });
    for (const { key } of changes) this.#delete(key);
    this.#objects.recountRefused(namespace);
    return changes;
  }

  /** Whether refused objects of the namespace may have room now: some of what it may take is free. */
  mayHaveRoom(namespace: string): boolean {
    const { shares } = this.#options;
    return shares === undefined || shares.bytesOf(namespace) <= shares.maxBytes * refillBelow;
  }

  /**
   * All objects of the namespace are about to be listed once more, for those that were refused.
   *
   * @returns takes one of them; what was deleted meanwhile stays deleted
   */
  beginRefill(namespace: string): (object: KubernetesObject) => ObjectChange[] {
    const deleted = new Set<ObjectKey>();
    this.#deletedInRefill = deleted;
    this.#objects.recountRefused(namespace);
    return (object) => (deleted.has(keyOf(object)) ? [] : this.apply({ type: 'MODIFIED', object }));
  }

  /** What an event of a watch makes of it. What is older than what is known of the same object is no news. */
  apply({ type, object }: Exclude<WatchEvent, { type: 'ERROR' | 'BOOKMARK' }>): ObjectChange[] {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (this.#options.keeps?.(key) === false) {
      this.#delete(key);
      return [];
    }
    if (previous !== undefined && isSame(previous, object) && isEarlier(versionOf(object), versionOf(previous)))
      return [];
    if (type === 'DELETED') {
      this.#deletedInRefill?.add(key);
      // Of one that has taken its place since, it says nothing.
      if (previous === undefined)
        return this.#options.isOnDemand === true ? [{ event: 'delete', key, previous: object }] : [];
      if (!isSame(previous, object)) return [];
      this.#delete(key);
      return [{ event: 'delete', key, previous }];
    }
    const kept = this.#put(this.#objects, key, object);
    return kept === undefined ? [] : changesOf(key, previous, kept);
  }

  #delete(key: ObjectKey): void {
    const freed = this.#objects.delete(key);
    if (freed > 0) this.#options.shares?.add(namespaceOf(key), -freed);
  }

  /** @returns what is kept of the object; undefined: nothing, because too many of its namespace were refused */
  #put(set: ObjectSet, key: ObjectKey, object: KubernetesObject): KubernetesObject | undefined {
    const { shares, refused } = this.#options;
    const namespace = namespaceOf(key);
    if (shares === undefined || namespace === '') {
      set.set(key, object, 0);
      return object;
    }
    const isCurrent = set === this.#objects;
    const known = set.bytesOf(key);
    // A set that comes takes the place of what there is.
    const others = shares.bytesOf(namespace) - (isCurrent ? known : (this.#objects.bytes.get(namespace) ?? 0));
    const taken = isCurrent ? others : others + (set.bytes.get(namespace) ?? 0) - known;
    const bytes = heapBytesOf(object);
    const isKnown = set.get(key) !== undefined;
    const current = this.#objects.get(key);
    if (taken + bytes <= shares.maxBytes) {
      set.set(key, object, bytes);
      if (isCurrent) shares.add(namespace, bytes - known);
      return object;
    }
    const reason =
      `is too large (${bytes} bytes in memory): the limit for all objects of namespace ${namespace} is ${shares.maxBytes} bytes, ` +
      `of which others take ${taken}; delete objects, or raise the memory limit of the control plane`;
    if (!isKnown && (set.refused.get(namespace) ?? 0) >= maxNamedRefusals) {
      set.countRefused(namespace);
      return undefined;
    }
    const stub = refusedObject(object, reason);
    // What was accepted before may stay in force, and goes on to count.
    const charged = Math.max(known, heapBytesOf(stub));
    set.set(key, stub, charged);
    if (isCurrent) shares.add(namespace, charged - known);
    if (current === undefined || refusalOf(current) === undefined) refused?.(key, reason);
    return stub;
  }
}

/** Objects by their key, and what they take, by namespace. */
class ObjectSet {
  readonly #objects = new Map<ObjectKey, KubernetesObject>();
  readonly #bytes = new Map<ObjectKey, number>();
  readonly bytes = new Map<string, number>();
  readonly refused = new Map<string, number>();

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

  bytesOf(key: ObjectKey): number {
    return this.#bytes.get(key) ?? 0;
  }

  /** @param bytes 0: it is not counted */
  set(key: ObjectKey, object: KubernetesObject, bytes: number): void {
    this.#forgetRefusal(key);
    this.#objects.set(key, object);
    if (refusalOf(object) !== undefined) this.countRefused(namespaceOf(key));
    if (bytes === 0) return;
    this.#count(key, bytes - this.bytesOf(key));
    this.#bytes.set(key, bytes);
  }

  /** @returns the bytes that it took */
  delete(key: ObjectKey): number {
    const bytes = this.bytesOf(key);
    this.#forgetRefusal(key);
    this.#objects.delete(key);
    this.#bytes.delete(key);
    this.#count(key, -bytes);
    return bytes;
  }

  /** Those that were only counted may have gone since, or come again. */
  recountRefused(namespace: string): void {
    let count = 0;
    for (const [key, object] of this.#objects)
      if (namespaceOf(key) === namespace && refusalOf(object) !== undefined) count++;
    if (count > 0) this.refused.set(namespace, count);
    else this.refused.delete(namespace);
  }

  countRefused(namespace: string, by = 1): void {
    const count = (this.refused.get(namespace) ?? 0) + by;
    if (count > 0) this.refused.set(namespace, count);
    else this.refused.delete(namespace);
  }

  #forgetRefusal(key: ObjectKey): void {
    const known = this.#objects.get(key);
    if (known !== undefined && refusalOf(known) !== undefined) this.countRefused(namespaceOf(key), -1);
  }

  #count(key: ObjectKey, bytes: number): void {
    const namespace = namespaceOf(key);
    const sum = (this.bytes.get(namespace) ?? 0) + bytes;
    if (sum > 0) this.bytes.set(namespace, sum);
    else this.bytes.delete(namespace);
  }
}

export function keyOf({ metadata: { namespace = '', name } }: KubernetesObject): ObjectKey {
  return `${namespace}/${name}`;
}

function namespaceOf(key: ObjectKey): string {
  return key.slice(0, key.indexOf('/'));
}

function changesOf(key: ObjectKey, previous: KubernetesObject | undefined, object: KubernetesObject): ObjectChange[] {
  if (previous === undefined) return [{ event: 'add', key, object }];
  if (!isSame(previous, object)) {
    return [
      { event: 'delete', key, previous },
      { event: 'add', key, object },
    ];
  }
  // A refused object may have room in the same version.
  const isUnchanged = versionOf(previous) === versionOf(object) && refusalOf(previous) === refusalOf(object);
  return isUnchanged ? [] : [{ event: 'update', key, object, previous }];
}

const isSame = (one: KubernetesObject, other: KubernetesObject): boolean => one.metadata.uid === other.metadata.uid;
const versionOf = ({ metadata: { resourceVersion = '' } }: KubernetesObject): string => resourceVersion;
