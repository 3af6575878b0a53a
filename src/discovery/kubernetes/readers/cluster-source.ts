/**
 * Objects of a cluster as a source of configuration: what informers know is decoded as files are. A change costs the objects that
 * changed, however many of a kind there are.
 */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { type KindName, kinds } from '../../../model/kinds/index.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { Turns } from '../../../runtime/turns.ts';
import { ConfigSnapshot } from '../../config/snapshots/config-snapshot.ts';
import type { ConfigSource, SourceReading } from '../../config/sources/config-source.ts';
import { withoutEffect } from '../../config/sources/object-problems.ts';
import { isOfRevision } from '../../config/sources/object-revision.ts';
import { resourceOf } from '../api-resource.ts';
import type { InformerEffects } from '../api-server.effects.ts';
import type { KubernetesObject } from '../api-server.ts';
import { excessOf } from '../store/object-scan.ts';
import { type ObjectChange, type ObjectKey, refusalOf } from '../store/object-store.ts';
import { decodedObject } from './decoded-object.ts';
import type { ObjectReference, ReferencedKind, ReferencedObjects } from './referenced-objects.ts';
import { defaultMaxReadMs, type UnreadObject, UnreadObjects } from './unread-objects.ts';

export interface ClusterSourceOptions {
  /** `k8s://`. */
  readonly address: string;
  /** Where they are followed. */
  readonly informers: InformerEffects;
  readonly kinds: readonly KindName[];
  /** Kinds that others read: the first reading waits for them, too. */
  readonly awaits?: readonly KindName[];
  /** Of this control plane: objects of Istio's that are labelled for another one are not there. Empty: `default`. */
  readonly revision: string;
  /** As {@link defaultMaxReadMs}; a test may end a reading at once. */
  readonly maxReadMs?: number;
  /** Secrets and ConfigMaps are read where an object refers to them; absent: informers have all of them. */
  readonly referenced?: {
    readonly objects: ReferencedObjects;
    readonly of: (config: Config) => readonly ObjectReference[];
  };
}

/** An object whose newest version is refused, or was until now. */
export interface RefusedObject {
  readonly kind: KindName;
  readonly key: ObjectKey;
  /** Of the version that was read; absent: it is gone. */
  readonly generation?: number;
  /** What keeps it out of force; empty: nothing any more. */
  readonly errors: readonly ConfigProblem[];
}

/** Of one object. */
interface Held {
  /** In force: the object itself, its last good version, or what stands in for it. */
  readonly inForce: readonly Config[];
  readonly problems: readonly ConfigProblem[];
  /** Of the version that was read. */
  readonly generation?: number;
}

/**
 * A reading waits so long for objects that are newly referred to, so that a Gateway and its certificate come into force together. The first
 * reading waits for all of them.
 */
const maxReferenceWaitMs = 250;
const referencedKinds: readonly ReferencedKind[] = ['Secret', 'ConfigMap'];
const nothing: Held = { inForce: [], problems: [] };

export class ClusterSource implements ConfigSource {
  readonly #options: ClusterSourceOptions;
  /** What has to be read, but for referenced objects. */
  readonly #unread = new UnreadObjects();
  /** Secrets and ConfigMaps that have to be read. */
  #unreadReferenced = new Map<KindName, Set<ObjectKey>>();
  readonly #held = new Map<KindName, Map<ObjectKey, Held>>();
  readonly #synced: Promise<unknown>;
  #snapshot = ConfigSnapshot.empty;
  #hasRead = false;
  #problemCount = 0;
  #changed: ((kind: string) => void) | undefined;
  readonly #refusedListeners: ((refused: RefusedObject) => void)[] = [];

  constructor(options: ClusterSourceOptions) {
    this.#options = options;
    const { informers } = options;
    for (const kind of options.kinds) {
      this.#held.set(kind, new Map());
      const reader = (changes: readonly ObjectChange[]): void => this.#note(kind, changes);
      if (this.#isReferenced(kind)) options.referenced!.objects.addReader(kind, reader);
      else informers.addReader(resourceOf(kind), reader);
    }
    const { awaits = [] } = options;
    this.#synced = Promise.all([...options.kinds, ...awaits].map((kind) => informers.firstSet(resourceOf(kind))));
  }

  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  get problemCount(): number {
    return this.#problemCount;
  }

  /** Tells of each object whose newest version is refused, when it was read, and of each that was and is no more. */
  onRefused(listener: (refused: RefusedObject) => void): void {
    this.#refusedListeners.push(listener);
  }

  /** Where it changes is the kind: which objects of it, is noted here. */
  watch({ changed }: WatchHandlers): StopWatching {
    this.#changed = changed;
    for (const kind of new Set([...this.#unread.kinds(), ...this.#unreadReferenced.keys()])) changed(kind);
    return () => {
      this.#changed = undefined;
    };
  }

  async read(): Promise<SourceReading> {
    await this.#synced;
    const taken: UnreadObject[] = [];
    try {
      const reading = await this.#read(taken);
      this.#hasRead = true;
      const [left] = this.#unread.kinds();
      if (left !== undefined) this.#changed?.(left);
      return reading;
    } catch (error) {
      this.#unread.endReading();
      for (const [kind, key] of taken) this.#noteUnread(kind, key);
      throw error;
    }
  }

  /** @param taken gets what is read: should the reading fail, it is read again */
  async #read(taken: UnreadObject[]): Promise<SourceReading> {
    const turns = new Turns();
    const edits = new Map<string, Config | undefined>();
    const problems: ConfigProblem[] = [];
    const recovered: string[] = [];
    const now: [KindName, ObjectKey, Held][] = [];
    const read = async (kind: KindName, key: ObjectKey): Promise<void> => {
      taken.push([kind, key]);
      const before = this.#held.get(kind)!.get(key) ?? nothing;
      const object = this.#objectOf(kind, key);
      const after = object === undefined ? nothing : this.#decoded(kind, object, before);
      if (after !== before) now.push([kind, key, after]);
      note(edits, before, after);
      if (after.problems.length > 0) problems.push(...after.problems);
      else if (before.problems.length > 0) recovered.push(`${this.#options.address}: ${before.problems[0]!.object}`);
      await turns.rest();
    };
    const { maxReadMs = defaultMaxReadMs } = this.#options;
    const begun = performance.now();
    // Proxies would take what is missing of the first reading for gone.
    const isOver = (): boolean => this.#hasRead && performance.now() - begun - turns.waitedMs >= maxReadMs;
    do for (const [kind, key] of this.#unread.takeRound()) await read(kind, key);
    while (this.#unread.size > 0 && !isOver());
    this.#unread.endReading();
    await this.#readReferenced(edits);
    const referenced = this.#unreadReferenced;
    this.#unreadReferenced = new Map();
    for (const [kind, keys] of referenced) for (const key of keys) await read(kind, key);
    this.#snapshot = await turns.through(this.#snapshot.editing(edits));
    for (const [kind, key, after] of now) {
      const held = this.#held.get(kind)!;
      this.#tellRefused(kind, key, held.get(key) ?? nothing, after);
      this.#problemCount += after.problems.length - (held.get(key)?.problems.length ?? 0);
      if (after === nothing) held.delete(key);
      else held.set(key, after);
    }
    return { outcome: 'read', touched: new Set(edits.keys()), problems, recovered };
  }

  #isReferenced(kind: KindName): kind is ReferencedKind {
    return this.#options.referenced !== undefined && (referencedKinds as readonly KindName[]).includes(kind);
  }

  #objectOf(kind: KindName, key: ObjectKey): KubernetesObject | undefined {
    return this.#isReferenced(kind)
      ? this.#options.referenced!.objects.get(kind, key)
      : this.#options.informers.storeOf(resourceOf(kind)).get(key);
  }

  /** What the changed objects refer to is read now. */
  async #readReferenced(edits: ReadonlyMap<string, Config | undefined>): Promise<void> {
    const { referenced } = this.#options;
    if (referenced === undefined) return;
    for (const [key, config] of edits) {
      referenced.objects.refer(key, config === undefined ? [] : referenced.of(config));
    }
    await referenced.objects.attempted(this.#hasRead ? maxReferenceWaitMs : undefined);
  }

  #tellRefused(kind: KindName, key: ObjectKey, before: Held, after: Held): void {
    const errors = after.problems.filter(isError);
    if (errors.length === 0 && !before.problems.some(isError)) return;
    const { generation } = after;
    const refused = { kind, key, errors, ...(generation !== undefined && { generation }) };
    for (const listener of this.#refusedListeners) listener(refused);
  }

  #decoded(kind: KindName, object: KubernetesObject, before: Held): Held {
    const { address, revision } = this.#options;
    const isRefused = refusalOf(object) !== undefined || excessOf(object) !== undefined;
    // Of a refused object the labels are unknown: any revision may be meant.
    if (!isRefused && kinds[kind].group.endsWith('istio.io') && !isOfRevision(object, revision)) return nothing;
    const { config, standIns, problems, generation } = decodedObject(address, kind, object);
    const version = generation === undefined ? {} : { generation };
    if (config === undefined) {
      const lastGood = before.inForce.filter(({ standsFor }) => standsFor === undefined);
      // What is wrong leaves the last good one in force; without one, what restricts is closed.
      return {
        inForce: lastGood.length > 0 ? lastGood : standIns,
        problems: withoutEffect(problems, lastGood),
        ...version,
      };
    }
    const [known] = before.inForce;
    const isSame = known !== undefined && isEqual(known, config);
    if (isSame && problems.length + before.problems.length === 0) return before;
    return { inForce: [isSame ? known : config], problems, ...version };
  }

  #note(kind: KindName, changes: readonly ObjectChange[]): void {
    let isNews = false;
    for (const change of changes) {
      if (change.event === 'update' && isOfStatusOnly(kind, change.previous, change.object)) continue;
      this.#noteUnread(kind, change.key);
      isNews = true;
    }
    if (isNews) this.#changed?.(kind);
  }

  #noteUnread(kind: KindName, key: ObjectKey): void {
    if (!this.#isReferenced(kind)) this.#unread.add(kind, key);
    else this.#unreadReferenced.set(kind, (this.#unreadReferenced.get(kind) ?? new Set()).add(key));
  }
}

const isError = ({ severity }: ConfigProblem): boolean => severity === 'error';

/** What a change of one object means to the objects in force. */
function note(edits: Map<string, Config | undefined>, before: Held, after: Held): void {
  if (before.inForce === after.inForce) return;
  const gone = before.inForce.filter((config) => !after.inForce.includes(config));
  const come = after.inForce.filter((config) => !before.inForce.includes(config));
  for (const config of gone) edits.set(configKeyText(config), undefined);
  for (const config of come) edits.set(configKeyText(config), config);
}

/** Kinds of Kubernetes' own of whose status nothing is made: others have in it what services are made of. */
const withoutStatus: ReadonlySet<KindName> = new Set(['Ingress']);

/**
 * Controllers write status all the time, this one as well, and nothing is made of it: only the API server raises a generation, when
 * something else is another. A WorkloadEntry's health is in its status.
 */
function isOfStatusOnly(kind: KindName, previous: KubernetesObject, object: KubernetesObject): boolean {
  if (refusalOf(previous) !== refusalOf(object) || excessOf(previous) !== excessOf(object)) return false;
  const [before, now] = [previous.metadata, object.metadata];
  const isMadeOfStatus = kind === 'WorkloadEntry' || (kinds[kind].body !== 'spec' && !withoutStatus.has(kind));
  if (isMadeOfStatus) return false;
  if (now.generation === undefined || now.generation !== before.generation) return false;
  return isSameText(before.labels, now.labels) && isSameText(before.annotations, now.annotations);
}

function isSameText(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Nothing that anybody could notice differs. What is the same again in another generation, or made anew, is another one to who writes its status. */
function isEqual(one: Config, other: Config): boolean {
  return (
    one.resourceVersion === other.resourceVersion &&
    one.creationTimestamp === other.creationTimestamp &&
    one.generation === other.generation &&
    one.uid === other.uid
  );
}
