/**
 * Objects of a cluster as a source of configuration: what informers know is decoded as files are. A change costs the objects that
 * changed, however many of a kind there are.
 */
import type { ResourceName } from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { readConfigObject } from '../../model/config/config-file.ts';
import type { Problem } from '../../model/config/problem.ts';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import { messageOf } from '../../runtime/errors.ts';
import { Turns } from '../../runtime/turns.ts';
import { ConfigSnapshot } from '../config/config-snapshot.ts';
import type { ConfigSource, SourceReading } from '../config/config-source.ts';
import type { StopWatching, WatchHandlers } from '../config/file-watch.ts';
import { resourceOf } from './api-resource.ts';
import type { KubernetesObject } from './api-server.ts';
import { type InformerEffects, nameOf } from './informer-effects.ts';
import { excessOf } from './object-scan.ts';
import { keyOf, type ObjectChange, type ObjectKey, refusalOf } from './object-store.ts';
import type { ObjectReference, ReferencedKind, ReferencedObjects } from './referenced-objects.ts';
import { type UnreadObject, UnreadObjects } from './unread-objects.ts';

export interface ClusterSourceOptions {
  /** `k8s://`. */
  readonly address: string;
  /** Where they are followed. */
  readonly informers: InformerEffects;
  readonly kinds: readonly KindName[];
  /** How they call a kind; by default by its resource. */
  readonly nameOf?: (kind: KindName) => ResourceName;
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

const revisionLabel = 'istio.io/rev';
/**
 * A reading waits so long for objects that are newly referred to, so that a Gateway and its certificate come into force together. The first
 * reading waits for all of them.
 */
const maxReferenceWaitMs = 250;
const referencedKinds: readonly ReferencedKind[] = ['Secret', 'ConfigMap'];
/**
 * Work of one reading, in milliseconds, after the first one. What is left is read next: objects of one namespace, however many change,
 * delay those of another one by about one reading.
 */
const defaultMaxReadMs = 30;
const nothing: Held = { inForce: [], problems: [] };

export class ClusterSource implements ConfigSource {
  readonly #options: ClusterSourceOptions;
  readonly #nameOf: (kind: KindName) => ResourceName;
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
    this.#nameOf = options.nameOf ?? ((kind) => nameOf(resourceOf(kind)));
    for (const kind of options.kinds) {
      this.#held.set(kind, new Map());
      const reader = (changes: readonly ObjectChange[]): void => this.#note(kind, changes);
      if (this.#isReferenced(kind)) options.referenced!.objects.addReader(kind, reader);
      else informers.addReader(this.#nameOf(kind), reader);
    }
    this.#synced = Promise.all(options.kinds.map((kind) => informers.firstSet(this.#nameOf(kind))));
  }

  /** All that there is of the kinds was handed over; never, of a cluster that does not answer. */
  get synced(): Promise<unknown> {
    return this.#synced;
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
      : this.#options.informers.storeOf(this.#nameOf(kind)).get(key);
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

  /** What a decoder breaks on, a mistake of ours, costs the object and no other one: it is refused, as one that nobody can read. */
  #decoded(kind: KindName, object: KubernetesObject, before: Held): Held {
    const refusal = refusalOf(object) ?? excessOf(object);
    if (refusal !== undefined) return this.#unreadable(kind, object, before, refusal);
    try {
      return this.#decode(kind, object, before);
    } catch (error) {
      return this.#unreadable(kind, object, before, `cannot be read: ${messageOf(error)}`);
    }
  }

  /** @param message why nothing but the object's metadata counts */
  #unreadable(kind: KindName, object: KubernetesObject, before: Held, message: string): Held {
    const { apiVersion, kind: written, metadata } = object;
    const { name, namespace, generation, uid } = metadata;
    const unreadable = { apiVersion, kind: written, metadata: { name, namespace, generation, uid }, spec: message };
    const refused = this.#decode(kind, unreadable as KubernetesObject, nothing);
    const lastGood = before.inForce.filter(({ standsFor }) => standsFor === undefined);
    const closed = refused.inForce.filter(({ standsFor }) => standsFor !== undefined);
    const about = { object: `${kind} ${keyOf(object)}`, field: '', message };
    const problem: ConfigProblem = { severity: 'error', place: { source: this.#options.address }, ...about };
    return { ...refused, inForce: lastGood.length > 0 ? lastGood : closed, problems: [problem] };
  }

  #decode(kind: KindName, object: KubernetesObject, before: Held): Held {
    const { address, revision } = this.#options;
    if (kinds[kind].group.endsWith('istio.io') && !isOfRevision(object, revision)) return nothing;
    const read = readConfigObject(address, asRead(kind, object), { creationTimestamp: 0 });
    const { generation } = object.metadata;
    const version = generation === undefined ? {} : { generation };
    const told = read.problems.filter(isWorthTelling(kind));
    const problems = boundedProblems(told).map((problem) => problemOf(problem, read.standIns, address));
    if (read.config === undefined) {
      const lastGood = before.inForce.filter(({ standsFor }) => standsFor === undefined);
      // What is wrong leaves the last good one in force; without one, what restricts is closed.
      return {
        inForce: lastGood.length > 0 ? lastGood : read.standIns,
        problems: withoutEffect(problems, lastGood),
        ...version,
      };
    }
    const [known] = before.inForce;
    const isSame = known !== undefined && isEqual(known, read.config);
    if (isSame && problems.length + before.problems.length === 0) return before;
    return { inForce: [isSame ? known : read.config], problems, ...version };
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

/** What controllers say of an object is no part of it, ourselves among them: a WorkloadEntry's is its health. */
function asRead(kind: KindName, object: KubernetesObject): KubernetesObject {
  if (kinds[kind].body !== 'spec' || kind === 'WorkloadEntry') return object;
  const { status: _, ...own } = object;
  return own;
}

const isError = ({ severity }: ConfigProblem): boolean => severity === 'error';

/** What a change of one object means to the objects in force. */
function note(edits: Map<string, Config | undefined>, before: Held, after: Held): void {
  if (before.inForce === after.inForce) return;
  const gone = before.inForce.filter((config) => !after.inForce.includes(config));
  const come = after.inForce.filter((config) => !before.inForce.includes(config));
  for (const config of gone) edits.set(configKeyText(configKeyOf(config)), undefined);
  for (const config of come) edits.set(configKeyText(configKeyOf(config)), config);
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

/**
 * Most objects of Kubernetes' own kinds are not written for the mesh, so that of these only an annotation or label of a Service is
 * reported. Objects of Istio and of the Gateway API have all warnings.
 */
function isWorthTelling(kind: KindName): (problem: Problem) => boolean {
  return ({ severity, field = '' }) =>
    severity === 'error' || kinds[kind].body === 'spec' || (kind === 'Service' && field.startsWith('metadata.'));
}

/** Whether an object of Istio's is there for a control plane of this revision. */
export function isOfRevision({ metadata: { labels } }: KubernetesObject, revision: string): boolean {
  const wanted = labels?.[revisionLabel];
  return wanted === undefined || (wanted || 'default') === (revision || 'default');
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

function problemOf(
  { severity, object = '', field = '', message, standIn = '' }: Problem,
  standIns: readonly Config[],
  source: string,
): ConfigProblem {
  const closed = standIns.find((config) => configKeyText(configKeyOf(config)) === standIn)?.standsFor?.effect;
  return { severity, place: { source }, object, field, message, ...(closed !== undefined && { closed }) };
}

/** Of one object. A list of 100,000 bad ports would be as many texts in memory, in the log and in statuses. */
const maxProblemsOfObject = 50;

/** Errors first: they keep an object out of force. */
function boundedProblems(problems: readonly Problem[]): readonly Problem[] {
  if (problems.length <= maxProblemsOfObject) return problems;
  const errors = problems.filter(({ severity }) => severity === 'error');
  const ordered = [...errors, ...problems.filter(({ severity }) => severity !== 'error')];
  const kept = ordered.slice(0, maxProblemsOfObject);
  const { field: _, ...last } = kept.at(-1)!;
  const more = problems.length - maxProblemsOfObject + 1;
  return [...kept.slice(0, -1), { ...last, message: `has ${more} more problems, which are not listed` }];
}

/** Where the last good one is in force nothing is closed. */
function withoutEffect(problems: readonly ConfigProblem[], lastGood: readonly Config[]): readonly ConfigProblem[] {
  return lastGood.length === 0 ? problems : problems.map(({ closed: _, ...problem }) => problem);
}
