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

interface Problematic {
  readonly problems: readonly ConfigProblem[];
  /** `undefined` if no version without errors exists, or if the newest version has only warnings. */
  readonly lastGood: Config | undefined;
}

export class StoredObjects implements FollowedObjects {
  readonly #options: StoredObjectsOptions;
  readonly #unreadObjects = new UnreadObjects();
  readonly #problematic = new Map<string, Problematic>();
  readonly #changedListeners: (() => void)[] = [];
  readonly #rejectedListeners: ((rejected: RejectedObject) => void)[] = [];
  /** Whether listeners were called since the last read began, or {@link #delayTimer} will call them. */
  #isReported = false;
  #delayTimer: NodeJS.Timeout | undefined;
  #lastReadAt = Number.NEGATIVE_INFINITY;
  #hasRead = false;

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

  onRejected(listener: (refused: RejectedObject) => void): void {
    this.#rejectedListeners.push(listener);
  }

  get(key: string): Config | undefined {
    const [kind, object] = splitKey(key);
    if (!this.#options.kinds.includes(kind)) return undefined;
    const problematic = this.#problematic.get(key);
    if (problematic?.lastGood !== undefined) return problematic.lastGood;
    const stored = this.#storeOf(kind).get(object);
    return stored && decodedObject(this.#options.address, kind, stored).config;
  }

  /**
   * Alternates between namespaces. Except for the first, a read takes at most {@link defaultMaxReadMs}.
   *
   * @param activeConfigOf returns the registry's version of an object, which is kept if the newest version has errors
   */
  *readInSteps(activeConfigOf: (key: string) => Config | undefined): Steps<ObjectsReading> {
    this.#isReported = false;
    this.#endDelay();
    this.#lastReadAt = performance.now();
    const objectsReading: MutableReading = { changes: [], problems: [], recovered: [] };
    const { maxReadMs = defaultMaxReadMs } = this.#options;
    let workedMs = 0;
    try {
      do {
        for (const [kind, key] of this.#unreadObjects.takeRound()) {
          const began = performance.now();
          this.#read(kind, key, activeConfigOf, objectsReading);
          workedMs += performance.now() - began;
          yield;
        }
      } while (this.#unreadObjects.size > 0 && !(this.#hasRead && workedMs >= maxReadMs));
      this.#hasRead = true;
    } finally {
      this.#unreadObjects.endReading();
    }
    if (this.#unreadObjects.size > 0 && (!this.#isReported || this.#delayTimer !== undefined)) this.#reportNow();
    return objectsReading;
  }

  /** A rejected object has its last valid version. */
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

  #read(
    kind: KindName,
    object: ObjectKey,
    activeConfigOf: (key: string) => Config | undefined,
    { changes, problems, recovered }: MutableReading,
  ): void {
    const key = `${kind}/${object}`;
    const previous = this.#problematic.get(key);
    const stored = this.#storeOf(kind).get(object);
    const decoded = stored && decodedObject(this.#options.address, kind, stored);
    const objectProblems = decoded?.problems ?? [];
    const errors = objectProblems.filter(({ severity }) => severity === 'error');
    if (objectProblems.length === 0) this.#problematic.delete(key);
    else {
      const lastGood = errors.length === 0 ? undefined : (previous?.lastGood ?? activeConfigOf(key));
      this.#problematic.set(key, { problems: objectProblems, lastGood });
    }
    problems.push(...objectProblems);
    if (objectProblems.length === 0 && previous !== undefined)
      recovered.push(`${this.#options.address}: ${previous.problems[0]!.object}`);
    if (errors.length > 0 || previous?.problems.some(({ severity }) => severity === 'error')) {
      const { generation } = decoded ?? {};
      const rejectedObject = { kind, key: object, errors, ...(generation !== undefined && { generation }) };
      for (const listener of this.#rejectedListeners) listener(rejectedObject);
    }
    if (decoded === undefined || decoded.config !== undefined) changes.push({ key, current: decoded?.config });
  }

  #storeOf(kind: KindName): ObjectStore {
    const { informers, nameOf: nameOfKind } = this.#options;
    return informers.storeOf(nameOfKind === undefined ? resourceOf(kind) : nameOfKind(kind));
  }

  #report(): void {
    if (this.#isReported) return;
    const remainingMs = this.#hasRead ? this.#lastReadAt + readingIntervalMs - performance.now() : 0;
    if (remainingMs <= 0) {
      this.#reportNow();
      return;
    }
    this.#isReported = true;
    this.#delayTimer = setTimeout(() => this.#reportNow(), remainingMs).unref();
  }

  #reportNow(): void {
    this.#endDelay();
    this.#isReported = true;
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
  const end = key.indexOf('/');
  return [key.slice(0, end) as KindName, key.slice(end + 1)];
}
