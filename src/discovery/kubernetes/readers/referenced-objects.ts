/**
 * Reads only referenced Secrets and ConfigMaps, so that tenants cannot fill the memory with unused data (issue 33, item 10).
 *
 * If a read fails, the last state is kept and the read is retried with backoff (`machines/discovery/retry-delay.ts`).
 */
import { incrementFailures, retryDelayMs } from '../../../../machines/discovery/retry-delay.ts';
import { isNamespace, isObjectName } from '../../../model/fields/names.ts';
import { resourceOf } from '../api-resource.ts';
import type { InformerEffects, StoreReader } from '../api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../api-server.ts';
import { heapBytesOf } from '../store/heap-size.ts';
import { createRejectedObject, type ObjectChange, type ObjectKey, rejectionReasonOf } from '../store/object-store.ts';

export type ReferencedDataKind = 'Secret' | 'ConfigMap';

export interface ObjectReference {
  readonly kind: ReferencedDataKind;
  readonly namespace: string;
  readonly name: string;
}

/** `refused` means that the object exceeds a limit, `unread` that it has no reference or that no read has succeeded yet. */
export type ReferencedState = 'present' | 'absent' | 'refused' | 'unread';

export type Referrer = string | object;

/** Twice the size of all public CA certificates (220 KB). */
export const maxReferencedObjectBytes = 512 * 1024;
export const maxReferencedNamespaceBytes = 16 * 1024 * 1024;
/** Includes missing objects, because each is read once. */
export const maxReferencesOfNamespace = 2_000;
/** Concurrent reads. Because of the limit per namespace, some remain for other namespaces. */
const maxConcurrentReads = 8;
const maxReadsOfNamespace = 4;

export interface ReferencedObjectsOptions {
  readonly server: Pick<ApiServer, 'list'>;
  /** Informers of both kinds with the filter {@link ReferencedObjects.shouldKeep}. */
  readonly informers: () => Pick<InformerEffects, 'addReader' | 'waitForFirstSet' | 'storeOf'>;
  readonly fault: (error: unknown) => void;
  /** Called if a limit causes a reference to be ignored or an object not to be kept. */
  readonly onRejected: (kind: ReferencedDataKind, key: ObjectKey, reason: string) => void;
}

type ReferenceKey = string;

interface StoredObject {
  readonly object: KubernetesObject;
  readonly bytes: number;
}

export class ReferencedObjects {
  readonly #options: ReferencedObjectsOptions;
  readonly #referencesByReferrer = new Map<Referrer, ReadonlySet<ReferenceKey>>();
  readonly #references = new Map<ReferenceKey, number>();
  readonly #referencesOfNamespace = new Map<string, number>();
  readonly #storedObjects = new Map<ReferenceKey, StoredObject>();
  readonly #bytesOfNamespace = new Map<string, number>();
  readonly #readers = new Map<ReferencedDataKind, StoreReader[]>();
  readonly #pending = new Map<string, Set<ReferenceKey>>();
  /** `true` if the object has changed and must be read again. */
  readonly #runningReads = new Map<ReferenceKey, boolean>();
  readonly #unattemptedKeys = new Set<ReferenceKey>();
  #attemptWaiter: PromiseWithResolvers<void> | undefined;
  readonly #keysToRetry = new Set<ReferenceKey>();
  readonly #unreadableKeys = new Set<ReferenceKey>();
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  readonly #closeController = new AbortController();

  constructor(options: ReferencedObjectsOptions) {
    this.#options = options;
  }

  /** Call before the informers start. */
  followKinds(kinds: readonly ReferencedDataKind[]): void {
    for (const kind of kinds) {
      this.#options.informers().addReader(resourceOf(kind), (changes) => {
        for (const { key } of changes) this.#scheduleRead(`${kind} ${key}`);
      });
    }
  }

  shouldKeep(kind: ReferencedDataKind, key: ObjectKey): boolean {
    return this.#references.has(`${kind} ${key}`);
  }

  stateOf({ kind, namespace, name }: ObjectReference): ReferencedState {
    const key = `${kind} ${namespace}/${name}`;
    const storedObject = this.#storedObjects.get(key);
    if (storedObject !== undefined) return rejectionReasonOf(storedObject.object) === undefined ? 'present' : 'refused';
    const isRead = this.#references.has(key) && !this.#unattemptedKeys.has(key) && !this.#unreadableKeys.has(key);
    return isRead ? 'absent' : 'unread';
  }

  get(kind: ReferencedDataKind, key: ObjectKey): KubernetesObject | undefined {
    return this.#storedObjects.get(`${kind} ${key}`)?.object;
  }

  addReader(kind: ReferencedDataKind, reader: StoreReader): void {
    this.#readers.set(kind, [...(this.#readers.get(kind) ?? []), reader]);
  }

  /** @param references replace all previous references of the referrer */
  setReferences(referrer: Referrer, references: readonly ObjectReference[]): void {
    const previous = this.#referencesByReferrer.get(referrer);
    if (previous === undefined && references.length === 0) return;
    const keys = new Set<ReferenceKey>();
    for (const { kind, namespace, name } of references) {
      // Invalid names must not become part of a request path.
      if (!isNamespace(namespace) || !isObjectName(name)) continue;
      const key = `${kind} ${namespace}/${name}`;
      if (keys.has(key) || !this.#add(key, kind, namespace)) continue;
      keys.add(key);
    }
    // Removes after adding, so that objects in both lists are kept.
    for (const key of previous ?? []) this.#remove(key);
    if (keys.size > 0) this.#referencesByReferrer.set(referrer, keys);
    else this.#referencesByReferrer.delete(referrer);
  }

  /** Resolves when a read of each referenced object succeeded or failed, or after the limit. */
  async waitUntilAttempted(limitMs?: number): Promise<void> {
    if (this.#unattemptedKeys.size === 0) return;
    this.#attemptWaiter ??= Promise.withResolvers();
    const { promise } = this.#attemptWaiter;
    if (limitMs === undefined) return promise;
    const limit = Promise.withResolvers<void>();
    const timer = setTimeout(limit.resolve, limitMs);
    await Promise.race([promise, limit.promise]);
    clearTimeout(timer);
  }

  close(): void {
    this.#closeController.abort();
    clearTimeout(this.#retry);
  }

  #add(key: ReferenceKey, kind: ReferencedDataKind, namespace: string): boolean {
    const count = this.#references.get(key) ?? 0;
    if (count === 0) {
      const namespaceReferences = this.#referencesOfNamespace.get(namespace) ?? 0;
      if (namespaceReferences >= maxReferencesOfNamespace) {
        const reason = `is not read: the limit is ${maxReferencesOfNamespace} referenced Secrets and ConfigMaps in one namespace; remove references that are not needed`;
        this.#options.onRejected(kind, key.slice(kind.length + 1), reason);
        return false;
      }
      this.#referencesOfNamespace.set(namespace, namespaceReferences + 1);
      this.#unattemptedKeys.add(key);
    }
    this.#references.set(key, count + 1);
    if (count === 0) this.#scheduleRead(key);
    return true;
  }

  #remove(key: ReferenceKey): void {
    const count = this.#references.get(key)! - 1;
    if (count > 0) {
      this.#references.set(key, count);
      return;
    }
    const namespace = namespaceOf(key);
    this.#references.delete(key);
    subtract(this.#referencesOfNamespace, namespace, 1);
    this.#keysToRetry.delete(key);
    this.#unreadableKeys.delete(key);
    this.#markAttempted(key);
    this.#setObject(key, undefined);
  }

  #scheduleRead(key: ReferenceKey): void {
    if (!this.#references.has(key) || this.#closeController.signal.aborted) return;
    if (this.#runningReads.has(key)) {
      this.#runningReads.set(key, true);
      return;
    }
    const namespace = namespaceOf(key);
    const pending = this.#pending.get(namespace) ?? new Set();
    this.#pending.set(namespace, pending.add(key));
    this.#readNext();
  }

  #readNext(): void {
    while (this.#runningReads.size < maxConcurrentReads) {
      const namespace = [...this.#pending.keys()].find(
        (pendingNamespace) => this.#readCountOf(pendingNamespace) < maxReadsOfNamespace,
      );
      if (namespace === undefined) return;
      const dueKeys = this.#pending.get(namespace)!;
      const [key] = dueKeys as Iterable<ReferenceKey> as [ReferenceKey];
      dueKeys.delete(key);
      this.#pending.delete(namespace);
      if (dueKeys.size > 0) this.#pending.set(namespace, dueKeys);
      if (this.#references.has(key)) void this.#readKey(key);
    }
  }

  #readCountOf(namespace: string): number {
    let count = 0;
    for (const key of this.#runningReads.keys()) if (namespaceOf(key) === namespace) count++;
    return count;
  }

  async #readKey(key: ReferenceKey): Promise<void> {
    this.#runningReads.set(key, false);
    try {
      const object = await this.#request(key);
      this.#failures = 0;
      this.#unreadableKeys.delete(key);
      if (this.#references.has(key)) this.#setObject(key, object);
    } catch {
      // The failure is not logged, because the informers of the same server report it.
      if (this.#references.has(key)) {
        this.#keysToRetry.add(key);
        this.#unreadableKeys.add(key);
      }
      this.#retryLater();
    }
    const hasChanged = this.#runningReads.get(key);
    this.#runningReads.delete(key);
    this.#markAttempted(key);
    if (hasChanged) this.#scheduleRead(key);
    this.#readNext();
  }

  async #request(key: ReferenceKey): Promise<KubernetesObject | undefined> {
    const { kind, namespace, name } = partsOf(key);
    const selection = { namespace, fieldSelector: `metadata.name=${name}` };
    let receivedObject: KubernetesObject | undefined;
    await this.#options.server.list(resourceOf(kind), selection, this.#closeController.signal, (object) => {
      receivedObject = object;
    });
    return receivedObject;
  }

  #retryLater(): void {
    if (this.#retry !== undefined || this.#closeController.signal.aborted) return;
    this.#failures = incrementFailures(this.#failures);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      const keys = [...this.#keysToRetry];
      this.#keysToRetry.clear();
      for (const key of keys) this.#scheduleRead(key);
    }, retryDelayMs(this.#failures));
    this.#retry.unref();
  }

  #markAttempted(key: ReferenceKey): void {
    this.#unattemptedKeys.delete(key);
    if (this.#unattemptedKeys.size > 0) return;
    this.#attemptWaiter?.resolve();
    this.#attemptWaiter = undefined;
  }

  /** @param object `undefined` if the object does not exist or is not referenced */
  #setObject(key: ReferenceKey, object: KubernetesObject | undefined): void {
    const { kind, namespace, name } = partsOf(key);
    const previous = this.#storedObjects.get(key);
    subtract(this.#bytesOfNamespace, namespace, previous?.bytes ?? 0);
    const objectKey = `${namespace}/${name}`;
    if (object === undefined) {
      this.#storedObjects.delete(key);
      if (previous) this.#notifyReaders(kind, { event: 'delete', key: objectKey, previous: previous.object });
      return;
    }
    const limitedObject = this.#withLimits(kind, namespace, object);
    const bytes = heapBytesOf(limitedObject);
    this.#bytesOfNamespace.set(namespace, (this.#bytesOfNamespace.get(namespace) ?? 0) + bytes);
    this.#storedObjects.set(key, { object: limitedObject, bytes });
    // The next full set can then detect a deletion that the watch missed.
    this.#options.informers().storeOf(resourceOf(kind)).recordFoundObject(object);
    if (previous === undefined) this.#notifyReaders(kind, { event: 'add', key: objectKey, object: limitedObject });
    else if (previous.object.metadata.resourceVersion !== limitedObject.metadata.resourceVersion)
      this.#notifyReaders(kind, { event: 'update', key: objectKey, object: limitedObject, previous: previous.object });
  }

  #withLimits(kind: ReferencedDataKind, namespace: string, object: KubernetesObject): KubernetesObject {
    const bytes = heapBytesOf(object);
    const usedBytes = this.#bytesOfNamespace.get(namespace) ?? 0;
    const reason =
      bytes > maxReferencedObjectBytes
        ? `is too large: the fields that are read have ${bytes} bytes, the limit is ${maxReferencedObjectBytes}`
        : usedBytes + bytes > maxReferencedNamespaceBytes
          ? `is not kept: the limit for all referenced Secrets and ConfigMaps of namespace ${namespace} is ${maxReferencedNamespaceBytes} bytes, of which others take ${usedBytes}; remove references that are not needed`
          : undefined;
    if (reason === undefined) return object;
    this.#options.onRejected(kind, `${namespace}/${object.metadata.name}`, reason);
    return createRejectedObject(object, reason);
  }

  #notifyReaders(kind: ReferencedDataKind, change: ObjectChange): void {
    for (const reader of this.#readers.get(kind) ?? []) {
      try {
        void Promise.resolve(reader([change])).catch(this.#options.fault);
      } catch (error) {
        this.#options.fault(error);
      }
    }
  }
}

function partsOf(key: ReferenceKey): ObjectReference {
  const [kind, objectKey] = key.split(' ') as [ReferencedDataKind, ObjectKey];
  const [namespace, name] = objectKey.split('/') as [string, string];
  return { kind, namespace, name };
}

function namespaceOf(key: ReferenceKey): string {
  return key.slice(key.indexOf(' ') + 1, key.indexOf('/'));
}

function subtract(sums: Map<string, number>, key: string, amount: number): void {
  const remainingSum = (sums.get(key) ?? 0) - amount;
  if (remainingSum > 0) sums.set(key, remainingSum);
  else sums.delete(key);
}
