/** Decodes the changes in informers' stores since the last read. The registry keeps the valid objects. */
import type { ResourceName } from '../../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { Config } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { FollowedObjects, ObjectsReading } from '../../registry/followed-objects.ts';
import { resourceOf } from '../api-resource.ts';
import { type InformerEffects, nameOf } from '../api-server.effects.ts';
import type { ObjectKey, ObjectStore } from '../store/object-store.ts';
import type { RejectedObject } from './cluster-source.ts';
import { decodedObject } from './decoded-object.ts';
import { defaultMaxReadMs, UnreadObjects } from './unread-objects.ts';

/** Minimum interval between starts of reads. Frequent changes are read together, because each read causes a push. */
export const readingIntervalMs = 50;

export interface StoredObjectsOptions {
  readonly address: string;
  readonly informers: Pick<InformerEffects, 'addReader' | 'storeOf'>;
  readonly kinds: readonly KindName[];
  readonly nameOf?: (kind: KindName) => ResourceName;
  readonly maxReadMs?: number;
}

interface ProblematicObject {
  readonly problems: readonly ConfigProblem[];
  /** `undefined` if no version without errors exists, or if the newest version has only warnings. */
  readonly lastGood: Config | undefined;
}

export class StoredObjects implements FollowedObjects {
  readonly #options: StoredObjectsOptions;
  readonly #unreadObjects = new UnreadObjects();
  readonly #problematicObjects = new Map<string, ProblematicObject>();
  readonly #changedListeners: (() => void)[] = [];
  readonly #rejectedListeners: ((rejectedObject: RejectedObject) => void)[] = [];
  /** Whether listeners were called since the last read began, or {@link #delayTimer} will call them. */
  #isReportPending = false;
  #delayTimer: NodeJS.Timeout | undefined;
  #lastReadAt = Number.NEGATIVE_INFINITY;
  #hasReadOnce = false;

  constructor(options: StoredObjectsOptions) {
    this.#options = options;
    const { informers, kinds, nameOf: nameOfKind = (kind) => nameOf(resourceOf(kind)) } = options;
    for (const kind of kinds) {
      informers.addReader(nameOfKind(kind), (changes) => {
        for (const { key } of changes) this.#unreadObjects.add(kind, key);
        if (changes.length > 0) this.#report();
      });
    }
  }

  /** Called once after changes until the next read, and at least {@link readingIntervalMs} after the previous call. */
  onChanged(listener: () => void): void {
    this.#changedListeners.push(listener);
  }

  onRejected(listener: (rejectedObject: RejectedObject) => void): void {
    this.#rejectedListeners.push(listener);
  }

  get(key: string): Config | undefined {
    const [kind, object] = splitKey(key);
    if (!this.#options.kinds.includes(kind)) return undefined;
    const problematicObject = this.#problematicObjects.get(key);
    if (problematicObject?.lastGood !== undefined) return problematicObject.lastGood;
    const storedObject = this.#storeOf(kind).get(object);
    return storedObject && decodedObject(this.#options.address, kind, storedObject).config;
  }

  /**
   * Alternates between namespaces. Except for the first, a read takes at most {@link defaultMaxReadMs}.
   *
   * @param activeConfigOf returns the registry's version of an object, which is kept if the newest version has errors
   */
  *readInSteps(activeConfigOf: (key: string) => Config | undefined): Steps<ObjectsReading> {
    this.#isReportPending = false;
    this.#endDelay();
    this.#lastReadAt = performance.now();
    const objectsReading: MutableReading = { changes: [], problems: [], recovered: [] };
    const { maxReadMs = defaultMaxReadMs } = this.#options;
    let busyMs = 0;
    try {
      do {
        for (const [kind, key] of this.#unreadObjects.drainRound()) {
          const startedAt = performance.now();
          this.#readObject(kind, key, activeConfigOf, objectsReading);
          busyMs += performance.now() - startedAt;
          yield;
        }
      } while (this.#unreadObjects.size > 0 && !(this.#hasReadOnce && busyMs >= maxReadMs));
      this.#hasReadOnce = true;
    } finally {
      this.#unreadObjects.endReading();
    }
    if (this.#unreadObjects.size > 0 && (!this.#isReportPending || this.#delayTimer !== undefined))
      this.#reportImmediately();
    return objectsReading;
  }

  /** Returns a rejected object in its last valid version. */
  *readAll(): Steps<readonly Config[]> {
    const configs: Config[] = [];
    for (const kind of this.#options.kinds) {
      for (const [key] of this.#storeOf(kind).entries()) {
        const config = this.get(`${kind}/${key}`);
        if (config !== undefined) configs.push(config);
        yield;
      }
    }
    return configs;
  }

  #readObject(
    kind: KindName,
    object: ObjectKey,
    activeConfigOf: (key: string) => Config | undefined,
    { changes, problems, recovered }: MutableReading,
  ): void {
    const key = `${kind}/${object}`;
    const previous = this.#problematicObjects.get(key);
    const storedObject = this.#storeOf(kind).get(object);
    const decodedState = storedObject && decodedObject(this.#options.address, kind, storedObject);
    const objectProblems = decodedState?.problems ?? [];
    const errors = objectProblems.filter(({ severity }) => severity === 'error');
    if (objectProblems.length === 0) this.#problematicObjects.delete(key);
    else {
      const lastGoodConfig = errors.length === 0 ? undefined : (previous?.lastGood ?? activeConfigOf(key));
      this.#problematicObjects.set(key, { problems: objectProblems, lastGood: lastGoodConfig });
    }
    problems.push(...objectProblems);
    if (objectProblems.length === 0 && previous !== undefined)
      recovered.push(`${this.#options.address}: ${previous.problems[0]!.object}`);
    if (errors.length > 0 || previous?.problems.some(({ severity }) => severity === 'error')) {
      const { generation } = decodedState ?? {};
      const rejectedObject = { kind, key: object, errors, ...(generation !== undefined && { generation }) };
      for (const listener of this.#rejectedListeners) listener(rejectedObject);
    }
    if (decodedState === undefined || decodedState.config !== undefined)
      changes.push({ key, current: decodedState?.config });
  }

  #storeOf(kind: KindName): ObjectStore {
    const { informers, nameOf: nameOfKind } = this.#options;
    return informers.storeOf(nameOfKind === undefined ? resourceOf(kind) : nameOfKind(kind));
  }

  #report(): void {
    if (this.#isReportPending) return;
    const remainingMs = this.#hasReadOnce ? this.#lastReadAt + readingIntervalMs - performance.now() : 0;
    if (remainingMs <= 0) {
      this.#reportImmediately();
      return;
    }
    this.#isReportPending = true;
    this.#delayTimer = setTimeout(() => this.#reportImmediately(), remainingMs).unref();
  }

  #reportImmediately(): void {
    this.#endDelay();
    this.#isReportPending = true;
    for (const listener of this.#changedListeners) listener();
  }

  #endDelay(): void {
    clearTimeout(this.#delayTimer);
    this.#delayTimer = undefined;
  }
}

interface MutableReading extends ObjectsReading {
  readonly changes: { readonly key: string; readonly current: Config | undefined }[];
  readonly problems: ConfigProblem[];
  readonly recovered: string[];
}

/** `Pod/shop/web-0` becomes `Pod` and `shop/web-0`. The key of a Node is `/node-1`. */
function splitKey(key: string): [KindName, ObjectKey] {
  const slashIndex = key.indexOf('/');
  return [key.slice(0, slashIndex) as KindName, key.slice(slashIndex + 1)];
}
