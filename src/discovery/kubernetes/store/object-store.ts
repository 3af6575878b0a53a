/** A full set is collected separately and then replaces the current one. Reports the differences, including deletions that the watch missed. */
import { isEarlier } from '../../../../machines/discovery/kubernetes/informer-rules.ts';
import type { KubernetesObject, WatchEvent } from '../api-server.ts';
import { heapBytesOf } from './heap-size.ts';
import { maxNamedRefusals, type NamespaceShares } from './namespace-shares.ts';

/** `NAMESPACE/NAME`, or `/NAME` for cluster-scoped objects. */
export type ObjectKey = string;

/** An object that was recreated under its name causes a `delete` and an `add`, even if the watch missed the deletion. */
export type ObjectChange =
  | { readonly event: 'add'; readonly key: ObjectKey; readonly object: KubernetesObject }
  | {
      readonly event: 'update';
      readonly key: ObjectKey;
      readonly object: KubernetesObject;
      readonly previous: KubernetesObject;
    }
  /** `previous` is the last known version. The watch may have missed a later one. */
  | { readonly event: 'delete'; readonly key: ObjectKey; readonly previous: KubernetesObject };

export interface ObjectStoreOptions {
  /** Limits of namespaces. Cluster-scoped objects are not limited. */
  readonly shares?: NamespaceShares;
  /** Called once for each rejected version of an object. */
  readonly onRejected?: (key: ObjectKey, reason: string) => void;
  readonly shouldKeep?: (key: ObjectKey) => boolean;
  /** Whether to report deletions of objects that are not in the store, because readers may know them. */
  readonly isOnDemand?: boolean;
}

/** Above this share of a namespace's limit, listing the namespace again is not worthwhile. */
const maxShareForRefill = 3 / 4;

const rejectedMarker = Symbol('refusal');

export function rejectionReasonOf(object: KubernetesObject): string | undefined {
  return (object as { readonly [rejectedMarker]?: string })[rejectedMarker];
}

export function createRejectedObject(object: KubernetesObject, reason: string): KubernetesObject {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata;
  const readableMetadata = Object.entries({
    name,
    namespace,
    uid,
    resourceVersion,
    generation,
    creationTimestamp,
  }).filter(([, value]) => value !== undefined);
  return {
    ...(apiVersion !== undefined && { apiVersion }),
    ...(kind !== undefined && { kind }),
    metadata: Object.fromEntries(readableMetadata) as unknown as KubernetesObject['metadata'],
    [rejectedMarker]: reason,
  };
}

export class ObjectStore {
  readonly #options: ObjectStoreOptions;
  #objects = new ObjectSet();
  #collectedObjects = new ObjectSet();
  #deletedInRefill: Set<ObjectKey> | undefined;

  constructor(options: ObjectStoreOptions = {}) {
    this.#options = options;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Includes objects without a stored name. */
  get refusedCounts(): ReadonlyMap<string, number> {
    return this.#objects.refusedCounts;
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

  beginSet(): void {
    this.#collectedObjects = new ObjectSet();
  }

  collect(object: KubernetesObject): number {
    const key = keyOf(object);
    if (this.#options.shouldKeep?.(key) !== false) this.#putObject(this.#collectedObjects, key, object);
    return this.#collectedObjects.size;
  }

  /** The objects of the collected set may be older, if the server was restored from a backup. */
  activateCollected(): ObjectChange[] {
    const previousSet = this.#objects;
    this.#objects = this.#collectedObjects;
    this.#collectedObjects = new ObjectSet();
    for (const [namespace, bytes] of previousSet.bytes) this.#options.shares?.add(namespace, -bytes);
    for (const [namespace, bytes] of this.#objects.bytes) this.#options.shares?.add(namespace, bytes);
    const changes: ObjectChange[] = [];
    for (const [key, previous] of previousSet.entries())
      if (this.#objects.get(key) === undefined) changes.push({ event: 'delete', key, previous });
    for (const [key, object] of this.#objects.entries()) changes.push(...changesOf(key, previousSet.get(key), object));
    return changes;
  }

  clear(): ObjectChange[] {
    this.#collectedObjects = new ObjectSet();
    return this.activateCollected();
  }

  /** Records the metadata of an object that a reader found before its watch event, so that its deletion is reported. */
  recordFoundObject({ apiVersion, kind, metadata }: KubernetesObject): void {
    const key = keyOf({ metadata });
    if (this.#objects.get(key) !== undefined || this.#options.shouldKeep?.(key) === false) return;
    const { name, namespace, uid, resourceVersion } = metadata;
    const readableMetadata = { name, namespace, uid, resourceVersion } as KubernetesObject['metadata'];
    this.#putObject(this.#objects, key, { apiVersion, kind, metadata: readableMetadata } as KubernetesObject);
  }

  dropNamespace(namespace: string): ObjectChange[] {
    const changes: ObjectChange[] = [];
    for (const [key, previous] of this.#objects.entries())
      if (namespaceOf(key) === namespace) changes.push({ event: 'delete', key, previous });
    for (const { key } of changes) this.#delete(key);
    this.#objects.recountRejected(namespace);
    return changes;
  }

  mayFitRejected(namespace: string): boolean {
    const { shares } = this.#options;
    return shares === undefined || shares.bytesOf(namespace) <= shares.maxBytes * maxShareForRefill;
  }

  /** @returns a function that adds a listed object. Objects that were deleted during the list stay deleted. */
  beginRefill(namespace: string): (object: KubernetesObject) => ObjectChange[] {
    const deletedKeys = new Set<ObjectKey>();
    this.#deletedInRefill = deletedKeys;
    this.#objects.recountRejected(namespace);
    return (object) => (deletedKeys.has(keyOf(object)) ? [] : this.apply({ type: 'MODIFIED', object }));
  }

  /** Ignores an event that is older than the stored version. */
  apply({ type, object }: Exclude<WatchEvent, { type: 'ERROR' | 'BOOKMARK' }>): ObjectChange[] {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (this.#options.shouldKeep?.(key) === false) {
      this.#delete(key);
      return [];
    }
    if (previous !== undefined && areSameObject(previous, object) && isEarlier(versionOf(object), versionOf(previous)))
      return [];
    if (type === 'DELETED') {
      this.#deletedInRefill?.add(key);
      // The event refers to the object with the earlier UID, not to the one that replaced it.
      if (previous === undefined)
        return this.#options.isOnDemand === true ? [{ event: 'delete', key, previous: object }] : [];
      if (!areSameObject(previous, object)) return [];
      this.#delete(key);
      return [{ event: 'delete', key, previous }];
    }
    const storedObject = this.#putObject(this.#objects, key, object);
    return storedObject === undefined ? [] : changesOf(key, previous, storedObject);
  }

  #delete(key: ObjectKey): void {
    const freedBytes = this.#objects.delete(key);
    if (freedBytes > 0) this.#options.shares?.add(namespaceOf(key), -freedBytes);
  }

  /** @returns `undefined` if too many objects of the namespace were rejected */
  #putObject(set: ObjectSet, key: ObjectKey, object: KubernetesObject): KubernetesObject | undefined {
    const { shares, onRejected } = this.#options;
    const namespace = namespaceOf(key);
    if (shares === undefined || namespace === '') {
      set.set(key, object, 0);
      return object;
    }
    const isActiveSet = set === this.#objects;
    const currentBytes = set.bytesOf(key);
    // The collected set will replace the current one, whose bytes are therefore not counted.
    const otherBytes =
      shares.bytesOf(namespace) - (isActiveSet ? currentBytes : (this.#objects.bytes.get(namespace) ?? 0));
    const usedBytes = isActiveSet ? otherBytes : otherBytes + (set.bytes.get(namespace) ?? 0) - currentBytes;
    const bytes = heapBytesOf(object);
    const isAlreadyStored = set.get(key) !== undefined;
    const current = this.#objects.get(key);
    if (usedBytes + bytes <= shares.maxBytes) {
      set.set(key, object, bytes);
      if (isActiveSet) shares.add(namespace, bytes - currentBytes);
      return object;
    }
    const reason =
      `is too large (${bytes} bytes in memory): the limit for all objects of namespace ${namespace} is ${shares.maxBytes} bytes, ` +
      `of which others take ${usedBytes}; delete objects, or raise the memory limit of the control plane`;
    if (!isAlreadyStored && (set.refusedCounts.get(namespace) ?? 0) >= maxNamedRefusals) {
      set.countRejected(namespace);
      return undefined;
    }
    const placeholder = createRejectedObject(object, reason);
    // The last accepted version may still be active, so its size still counts towards the limit.
    const chargedBytes = Math.max(currentBytes, heapBytesOf(placeholder));
    set.set(key, placeholder, chargedBytes);
    if (isActiveSet) shares.add(namespace, chargedBytes - currentBytes);
    if (current === undefined || rejectionReasonOf(current) === undefined) onRejected?.(key, reason);
    return placeholder;
  }
}

class ObjectSet {
  readonly #objects = new Map<ObjectKey, KubernetesObject>();
  readonly #bytes = new Map<ObjectKey, number>();
  readonly bytes = new Map<string, number>();
  readonly refusedCounts = new Map<string, number>();

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

  /** @param bytes 0 if the object does not count towards the limit */
  set(key: ObjectKey, object: KubernetesObject, bytes: number): void {
    this.#clearRejection(key);
    this.#objects.set(key, object);
    if (rejectionReasonOf(object) !== undefined) this.countRejected(namespaceOf(key));
    if (bytes === 0) return;
    this.#count(key, bytes - this.bytesOf(key));
    this.#bytes.set(key, bytes);
  }

  delete(key: ObjectKey): number {
    const bytes = this.bytesOf(key);
    this.#clearRejection(key);
    this.#objects.delete(key);
    this.#bytes.delete(key);
    this.#count(key, -bytes);
    return bytes;
  }

  /** Counts rejected objects again, because those without a stored name may have been deleted, or were listed again. */
  recountRejected(namespace: string): void {
    let count = 0;
    for (const [key, object] of this.#objects)
      if (namespaceOf(key) === namespace && rejectionReasonOf(object) !== undefined) count++;
    if (count > 0) this.refusedCounts.set(namespace, count);
    else this.refusedCounts.delete(namespace);
  }

  countRejected(namespace: string, amount = 1): void {
    const count = (this.refusedCounts.get(namespace) ?? 0) + amount;
    if (count > 0) this.refusedCounts.set(namespace, count);
    else this.refusedCounts.delete(namespace);
  }

  #clearRejection(key: ObjectKey): void {
    const currentObject = this.#objects.get(key);
    if (currentObject !== undefined && rejectionReasonOf(currentObject) !== undefined)
      this.countRejected(namespaceOf(key), -1);
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
  if (!areSameObject(previous, object)) {
    return [
      { event: 'delete', key, previous },
      { event: 'add', key, object },
    ];
  }
  // A rejected object may fit later without a new version.
  const isUnchanged =
    versionOf(previous) === versionOf(object) && rejectionReasonOf(previous) === rejectionReasonOf(object);
  return isUnchanged ? [] : [{ event: 'update', key, object, previous }];
}

const areSameObject = (one: KubernetesObject, other: KubernetesObject): boolean =>
  one.metadata.uid === other.metadata.uid;
const versionOf = ({ metadata: { resourceVersion = '' } }: KubernetesObject): string => resourceVersion;
