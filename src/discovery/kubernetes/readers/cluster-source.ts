/** The cost of a change does not depend on the number of objects. */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { type KindName, kinds } from '../../../model/kinds/index.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { Turns } from '../../../runtime/turns.ts';
import { ConfigSnapshot } from '../../config/snapshots/config-snapshot.ts';
import type { ConfigSource, SourceReading } from '../../config/sources/config-source.ts';
import { withoutEffect } from '../../config/sources/object-problems.ts';
import { hasRevision } from '../../config/sources/object-revision.ts';
import { resourceOf } from '../api-resource.ts';
import type { InformerEffects } from '../api-server.effects.ts';
import type { KubernetesObject } from '../api-server.ts';
import { excessOf } from '../store/object-scan.ts';
import { type ObjectChange, type ObjectKey, rejectionReasonOf } from '../store/object-store.ts';
import { decodedObject } from './decoded-object.ts';
import type { ObjectReference, ReferencedDataKind, ReferencedObjects } from './referenced-objects.ts';
import { defaultMaxReadMs, type UnreadObject, UnreadObjects } from './unread-objects.ts';

export interface ClusterSourceOptions {
  readonly address: string;
  readonly informers: InformerEffects;
  readonly kinds: readonly KindName[];
  /** Kinds of other readers that the first read also waits for. */
  readonly awaitedKinds?: readonly KindName[];
  /** Istio objects with the label of another revision are ignored. Empty means `default`. */
  readonly revision: string;
  readonly maxReadMs?: number;
  /** Reads only Secrets and ConfigMaps that an object refers to. If absent, informers watch all of them. */
  readonly referenced?: {
    readonly objects: ReferencedObjects;
    readonly referencesOf: (config: Config) => readonly ObjectReference[];
  };
}

/** The newest version of the object is rejected or valid again. */
export interface RejectedObject {
  readonly kind: KindName;
  readonly key: ObjectKey;
  /** Absent if the object was deleted. */
  readonly generation?: number;
  /** Empty if the object is valid again. */
  readonly errors: readonly ConfigProblem[];
}

interface DecodedState {
  readonly activeConfigs: readonly Config[];
  readonly problems: readonly ConfigProblem[];
  readonly generation?: number;
}

/** Maximum time for which a read waits for newly referenced objects, so that a Gateway and its certificate apply together. */
const maxReferenceWaitMs = 250;
const referencedKinds: readonly ReferencedDataKind[] = ['Secret', 'ConfigMap'];
const emptyState: DecodedState = { activeConfigs: [], problems: [] };

export class ClusterSource implements ConfigSource {
  readonly #options: ClusterSourceOptions;
  readonly #unreadObjects = new UnreadObjects();
  #unreadReferenced = new Map<KindName, Set<ObjectKey>>();
  readonly #objects = new Map<KindName, Map<ObjectKey, DecodedState>>();
  readonly #initialSync: Promise<unknown>;
  #snapshot = ConfigSnapshot.empty;
  #hasReadOnce = false;
  #problemCount = 0;
  #onChanged: ((kind: string) => void) | undefined;
  readonly #rejectedListeners: ((rejectedObject: RejectedObject) => void)[] = [];

  constructor(options: ClusterSourceOptions) {
    this.#options = options;
    const { informers } = options;
    for (const kind of options.kinds) {
      this.#objects.set(kind, new Map());
      const reader = (changes: readonly ObjectChange[]): void => this.#recordChanges(kind, changes);
      if (this.#isReferenced(kind)) options.referenced!.objects.addReader(kind, reader);
      else informers.addReader(resourceOf(kind), reader);
    }
    const { awaitedKinds = [] } = options;
    this.#initialSync = Promise.all(
      [...options.kinds, ...awaitedKinds].map((kind) => informers.waitForFirstSet(resourceOf(kind))),
    );
  }

  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  get problemCount(): number {
    return this.#problemCount;
  }

  onRejected(listener: (rejectedObject: RejectedObject) => void): void {
    this.#rejectedListeners.push(listener);
  }

  watch({ changed }: WatchHandlers): StopWatching {
    this.#onChanged = changed;
    for (const kind of new Set([...this.#unreadObjects.kinds(), ...this.#unreadReferenced.keys()])) changed(kind);
    return () => {
      this.#onChanged = undefined;
    };
  }

  async read(): Promise<SourceReading> {
    await this.#initialSync;
    const takenObjects: UnreadObject[] = [];
    try {
      const sourceReading = await this.#readTaken(takenObjects);
      this.#hasReadOnce = true;
      const [unreadKind] = this.#unreadObjects.kinds();
      if (unreadKind !== undefined) this.#onChanged?.(unreadKind);
      return sourceReading;
    } catch (error) {
      this.#unreadObjects.endReading();
      for (const [kind, key] of takenObjects) this.#markUnread(kind, key);
      throw error;
    }
  }

  /** @param takenObjects receives the read objects, so that they can be read again after a failure */
  async #readTaken(takenObjects: UnreadObject[]): Promise<SourceReading> {
    const workTurns = new Turns();
    const edits = new Map<string, Config | undefined>();
    const problems: ConfigProblem[] = [];
    const recovered: string[] = [];
    const decodedStates: [KindName, ObjectKey, DecodedState][] = [];
    const readObject = async (kind: KindName, key: ObjectKey): Promise<void> => {
      takenObjects.push([kind, key]);
      const previous = this.#objects.get(kind)!.get(key) ?? emptyState;
      const object = this.#objectOf(kind, key);
      const current = object === undefined ? emptyState : this.#decodeObject(kind, object, previous);
      if (current !== previous) decodedStates.push([kind, key, current]);
      addEdits(edits, previous, current);
      if (current.problems.length > 0) problems.push(...current.problems);
      else if (previous.problems.length > 0)
        recovered.push(`${this.#options.address}: ${previous.problems[0]!.object}`);
      await workTurns.waitIfTurnEnded();
    };
    const { maxReadMs = defaultMaxReadMs } = this.#options;
    const startedAt = performance.now();
    // The first read has no limit, because proxies would treat objects that are missing in it as deleted.
    const isTimeUp = (): boolean =>
      this.#hasReadOnce && performance.now() - startedAt - workTurns.waitedMs >= maxReadMs;
    do for (const [kind, key] of this.#unreadObjects.drainRound()) await readObject(kind, key);
    while (this.#unreadObjects.size > 0 && !isTimeUp());
    this.#unreadObjects.endReading();
    await this.#readReferenced(edits);
    const referencedKeys = this.#unreadReferenced;
    this.#unreadReferenced = new Map();
    for (const [kind, keys] of referencedKeys) for (const key of keys) await readObject(kind, key);
    this.#snapshot = await workTurns.runSteps(this.#snapshot.editInSteps(edits));
    for (const [kind, key, current] of decodedStates) {
      const storedEntries = this.#objects.get(kind)!;
      this.#notifyRejected(kind, key, storedEntries.get(key) ?? emptyState, current);
      this.#problemCount += current.problems.length - (storedEntries.get(key)?.problems.length ?? 0);
      if (current === emptyState) storedEntries.delete(key);
      else storedEntries.set(key, current);
    }
    return { outcome: 'read', touchedKeys: new Set(edits.keys()), problems, recovered };
  }

  #isReferenced(kind: KindName): kind is ReferencedDataKind {
    return this.#options.referenced !== undefined && (referencedKinds as readonly KindName[]).includes(kind);
  }

  #objectOf(kind: KindName, key: ObjectKey): KubernetesObject | undefined {
    return this.#isReferenced(kind)
      ? this.#options.referenced!.objects.get(kind, key)
      : this.#options.informers.storeOf(resourceOf(kind)).get(key);
  }

  async #readReferenced(edits: ReadonlyMap<string, Config | undefined>): Promise<void> {
    const { referenced } = this.#options;
    if (referenced === undefined) return;
    for (const [key, config] of edits) {
      referenced.objects.setReferences(key, config === undefined ? [] : referenced.referencesOf(config));
    }
    await referenced.objects.waitUntilAttempted(this.#hasReadOnce ? maxReferenceWaitMs : undefined);
  }

  #notifyRejected(kind: KindName, key: ObjectKey, previous: DecodedState, current: DecodedState): void {
    const errors = current.problems.filter(isError);
    if (errors.length === 0 && !previous.problems.some(isError)) return;
    const { generation } = current;
    const rejectedObject = { kind, key, errors, ...(generation !== undefined && { generation }) };
    for (const listener of this.#rejectedListeners) listener(rejectedObject);
  }

  #decodeObject(kind: KindName, object: KubernetesObject, previous: DecodedState): DecodedState {
    const { address, revision } = this.#options;
    const isRejected = rejectionReasonOf(object) !== undefined || excessOf(object) !== undefined;
    // The labels of a rejected object are unknown, so it may belong to any revision.
    if (!isRejected && kinds[kind].group.endsWith('istio.io') && !hasRevision(object, revision)) return emptyState;
    const { config, placeholders, problems, generation } = decodedObject(address, kind, object);
    const version = generation === undefined ? {} : { generation };
    if (config === undefined) {
      const lastGoodConfigs = previous.activeConfigs.filter(({ standsFor }) => standsFor === undefined);
      // An invalid object keeps its last valid version. Without one, its placeholder applies if it restricts access.
      return {
        activeConfigs: lastGoodConfigs.length > 0 ? lastGoodConfigs : placeholders,
        problems: withoutEffect(problems, lastGoodConfigs),
        ...version,
      };
    }
    const [activeConfig] = previous.activeConfigs;
    const isUnchanged = activeConfig !== undefined && isEqual(activeConfig, config);
    if (isUnchanged && problems.length + previous.problems.length === 0) return previous;
    return { activeConfigs: [isUnchanged ? activeConfig : config], problems, ...version };
  }

  #recordChanges(kind: KindName, changes: readonly ObjectChange[]): void {
    let hasChanges = false;
    for (const change of changes) {
      if (change.event === 'update' && isStatusOnlyChange(kind, change.previous, change.object)) continue;
      this.#markUnread(kind, change.key);
      hasChanges = true;
    }
    if (hasChanges) this.#onChanged?.(kind);
  }

  #markUnread(kind: KindName, key: ObjectKey): void {
    if (!this.#isReferenced(kind)) this.#unreadObjects.add(kind, key);
    else this.#unreadReferenced.set(kind, (this.#unreadReferenced.get(kind) ?? new Set()).add(key));
  }
}

const isError = ({ severity }: ConfigProblem): boolean => severity === 'error';

function addEdits(edits: Map<string, Config | undefined>, previous: DecodedState, current: DecodedState): void {
  if (previous.activeConfigs === current.activeConfigs) return;
  const removedConfigs = previous.activeConfigs.filter((config) => !current.activeConfigs.includes(config));
  const addedConfigs = current.activeConfigs.filter((config) => !previous.activeConfigs.includes(config));
  for (const config of removedConfigs) edits.set(configKeyText(config), undefined);
  for (const config of addedConfigs) edits.set(configKeyText(config), config);
}

/** Kubernetes kinds whose status is not used. The service registry uses the status of other kinds. */
const kindsWithUnusedStatus: ReadonlySet<KindName> = new Set(['Ingress']);

/** Controllers write the status frequently. The status of a WorkloadEntry is used, because it contains its health. */
function isStatusOnlyChange(kind: KindName, previous: KubernetesObject, object: KubernetesObject): boolean {
  if (rejectionReasonOf(previous) !== rejectionReasonOf(object) || excessOf(previous) !== excessOf(object))
    return false;
  const [oldMetadata, now] = [previous.metadata, object.metadata];
  const isStatusUsed = kind === 'WorkloadEntry' || (kinds[kind].body !== 'spec' && !kindsWithUnusedStatus.has(kind));
  if (isStatusUsed) return false;
  if (now.generation === undefined || now.generation !== oldMetadata.generation) return false;
  return areTextsEqual(oldMetadata.labels, now.labels) && areTextsEqual(oldMetadata.annotations, now.annotations);
}

function areTextsEqual(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Compares the fields that readers use, and generation and UID, which status writers use. */
function isEqual(one: Config, other: Config): boolean {
  return (
    one.resourceVersion === other.resourceVersion &&
    one.creationTimestamp === other.creationTimestamp &&
    one.generation === other.generation &&
    one.uid === other.uid
  );
}
