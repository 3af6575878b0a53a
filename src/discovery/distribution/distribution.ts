/**
 * What has become of the objects of a cluster in its proxies: which proxies have each, what Envoy rejects of it. Told of objects
 * that changed, and of what is rejected; looks when its chart says so (machines/discovery/distribution/distribution.machine.ts), and
 * says of which objects the status should be another.
 */
import type { DistributionLook } from '../../../machines/discovery/distribution/distribution.machine.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { needsPush } from '../../model/config/config-changes.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { Turns } from '../../runtime/turns.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import { ChangedObjects } from './changed-objects.ts';
import { isNamed, typesConcerned } from './concern.ts';
import type { ObjectDistributionOptions } from './distribution-options.ts';
import { type DueListener, DueObjects } from './due-objects.ts';
import { EnvoyRejections, type RejectionsOfObject } from './envoy-rejections.ts';
import { type Followed, isSame } from './followed-object.ts';
import {
  type Distribution,
  isComplete,
  type Mistake,
  type ObjectVerdict,
  partialCondition,
  reconciledCondition,
} from './object-verdict.ts';
import { type ObjectWarning, ObjectWarnings } from './object-warnings.ts';
import { type Count, type FollowedProxy, numberOfVersion, ProxyProgress } from './proxy-progress.ts';
import { RejectionBlame } from './rejection-blame.ts';
import { OwnCounts, totalOf } from './replica-report.ts';
import { generationOf, hasStatus, statusKinds } from './status-objects.ts';

/** Between what is not an edge. */
const restBetweenMs = 10_000;
/** A pushed ServiceEntry that makes no other services is named in no push. */
const unnamedMs = 10_000;
/** Proxies come back to a control plane that begins: that there are none means nothing yet. */
const settlingMs = 60_000;
/** A replica that serves proxies has its Lease, and counts in it, within this time: two renewals. */
const presenceMs = 4_000;
/** What of a look is spent on finding out by whose doing something is rejected. */
const traceMs = 20;
/** And on objects beside those that came last, or are rejected: with many shapes of proxies one may take a millisecond. */
const judgeMs = 50;
const mostNewest = 64;
const mostRejected = 1_000;
const mostComplete = 4_096;

export class ObjectDistribution {
  readonly #options: ObjectDistributionOptions;
  readonly #rejections = new EnvoyRejections<FollowedProxy>();
  readonly #steps = new ChangedObjects();
  /** Objects that are others than in the context that was published last, with when that was heard. */
  readonly #coming = new Map<string, number>();
  readonly #followed = new Map<string, Followed>();
  /** Objects that all proxies have, lately. */
  readonly #complete = new Map<string, Distribution>();
  readonly #mistakes = new Map<string, Mistake>();
  readonly #warnings = new ObjectWarnings();
  readonly #watchers = new Set<() => void>();
  readonly #due = new DueObjects();
  readonly #own: OwnCounts;
  readonly #blame: RejectionBlame;
  readonly #begun: number;
  #latest: PushContext | undefined;
  /** All objects are to be looked at for whether their status says what it should. */
  #looksAtAll = true;
  /** Something has happened since the last look began, and the chart was told. */
  #isStirred = false;
  /** Reports of other replicas that are read from then on are of all that served when the last object was complete. */
  #checkAt: number | undefined;
  /** Place of the object that was looked at last, of those of which a look has a part. */
  #next = 0;

  constructor(options: ObjectDistributionOptions) {
    this.#options = options;
    this.#begun = options.now();
    this.#own = new OwnCounts(options.revision ?? '');
    this.#blame = new RejectionBlame({
      ...{ options, steps: this.#steps },
      isRejected: (key) => this.#followed.get(key)?.told?.rejection !== undefined,
    });
    options.objects.onMistakes((key, mistake) => this.#mistaken(key, mistake));
  }

  // ---- what is told

  /** Objects were put together: these may be others than before. */
  joined(touched: Iterable<string>, changed: ReadonlySet<string>): void {
    for (const key of touched) {
      if (!hasStatus(kindOf(key))) continue;
      if (changed.has(key)) this.#coming.set(key, this.#options.now());
      else this.#sameInEffect(key);
    }
  }

  /** All proxies will be brought to a context. */
  published(published: Publication): void {
    const { context, forced, changed, configs } = published;
    const isFirst = this.#latest === undefined;
    this.#latest = context;
    const number = numberOfVersion(context.version);
    const objects = new Set<string>();
    for (const key of this.#coming.keys()) {
      const config = configs.byKey.get(key);
      const isIn = forced || config === undefined || isNamed(config, changed);
      if (!isIn) continue;
      objects.add(key);
      this.#due.begin(key);
      // What came while the context was made is in the next one, unless nothing of it is in any.
      const now = this.#options.configs().byKey.get(key);
      if (now === config || (now && config && !needsPush(config, now))) this.#coming.delete(key);
      // Of what was there before this program nobody knows who has it: the status says so, perhaps.
      if (!isFirst) this.#follow(key, now !== undefined && !this.#coming.has(key) ? now : config, number);
    }
    this.#steps.add({ context, forced, changed: new Set([...changed, ...objects]) });
    if (objects.size > 0 || this.#looksAtAll) this.#stir();
  }

  /** A proxy has rejected what it was sent of a type. */
  rejected(proxy: FollowedProxy, typeUrl: string): void {
    if (this.#rejections.add(proxy, typeUrl)) this.#stir();
  }

  /** A proxy that had rejected something of a type has taken what came after it. */
  accepted(proxy: FollowedProxy, typeUrl: string): void {
    if (this.#rejections.remove(proxy, typeUrl)) this.#stir();
  }

  /** A proxy is gone. */
  left(proxy: FollowedProxy): void {
    if (this.#rejections.left(proxy)) this.#stir();
  }

  /** Another replica says something else of it: what its status should be is told anew. */
  reconsider(key: string): void {
    const latest = this.#latest;
    if (latest === undefined) return;
    const complete = this.#complete.get(key);
    // The counts of other replicas may have changed as well. A replica that does not write has its own counts alone.
    const isCounted = complete !== undefined && !this.#options.others?.isWriter;
    if (!this.#followed.has(key) && !isCounted) {
      this.#follow(key, this.#options.configs().byKey.get(key), numberOfVersion(latest.version));
    }
    const followed = this.#followed.get(key);
    // Until it is counted the last known counts are reported.
    if (followed !== undefined && complete !== undefined) {
      followed.distribution = complete;
      followed.told = complete;
    }
    if (followed !== undefined && followed.distribution === undefined) followed.mustTell = true;
    else this.#due.note(key, true, this.#options.now());
    this.#stir();
  }

  /** The status misses the proxies of this replica, or has them as they were: an object that was complete is counted again. */
  recount(key: string): void {
    const latest = this.#latest;
    if (latest === undefined || this.#followed.has(key) || this.#coming.has(key)) return;
    this.#follow(key, this.#options.configs().byKey.get(key), numberOfVersion(latest.version));
    this.#stir();
  }

  /** All objects that take effect only in part. */
  warned(found: ReadonlyMap<string, ObjectWarning>): void {
    // Statuses may have warnings of an earlier control plane.
    if (!this.#warnings.isKnown) this.lookAtAll();
    const changed = this.#warnings.replace(found);
    for (const key of changed) this.#due.note(key, true, this.#options.now());
    if (changed.length > 0) this.#stir();
  }

  /** Another may have written before, or nobody: what the status of each object says is looked at. */
  lookAtAll(): void {
    this.#looksAtAll = true;
    this.#stir();
  }

  // ---- what is known

  /** Tells when there is something to look at, once before each look. @returns ends it */
  watch(stirred: () => void): () => void {
    this.#watchers.add(stirred);
    if (this.#isStirred) stirred();
    return () => void this.#watchers.delete(stirred);
  }

  /** Tells of objects whose status should be another. */
  onDue(listener: DueListener): void {
    this.#due.onDue(listener);
  }

  verdictOf(key: string): ObjectVerdict {
    const distribution = this.#followed.get(key)?.distribution ?? this.#complete.get(key);
    const mistake = this.#mistakes.get(key);
    const warning = this.#warnings.isKnown ? (this.#warnings.of(key) ?? 'none') : undefined;
    const config = this.#options.configs().byKey.get(key);
    const generation = config && generationOf(config);
    return {
      ...{ ...(distribution && { distribution }), ...(mistake && { mistake }) },
      ...{ ...(warning && { warning }), ...(generation !== undefined && { generation }) },
    };
  }

  /** Objects that are not in all proxies, or that Envoy rejects, or that are refused, or take effect only in part. */
  get unfinished(): Iterable<string> {
    return new Set([...this.#followed.keys(), ...this.#mistakes.keys(), ...this.#warnings.keys]);
  }

  /** Proxies of this replica that have each object, for the replica that writes the statuses. */
  report(): string {
    return this.#own.report(this.#options.now(), this.#options.objects);
  }

  /** How far everything is. Tells of which objects the status should be another. */
  async look(): Promise<DistributionLook> {
    const turns = new Turns();
    const start = this.#options.now();
    this.#isStirred = false;
    if (this.#looksAtAll && this.#latest !== undefined) await this.#followAll(turns);
    const awaited = this.#followUnnamed();
    const traceUntil = performance.now() + traceMs;
    const isTraced = this.#rejections.trace(
      (proxy, typeUrl) => this.#blame.of(proxy, typeUrl),
      () => performance.now() < traceUntil,
    );
    await this.#checkComplete();
    if (this.#followed.size > 0 || !this.#rejections.isEmpty) await this.#compare(turns);
    this.#due.tell();
    const unfinished = this.#followed.size + awaited + (isTraced ? 0 : 1) + (this.#checkAt === undefined ? 0 : 1);
    return { unfinished, tookMs: Math.ceil(this.#options.now() - start) };
  }

  /**
   * Reads the reports of other replicas, and follows a complete object again if one of them has a proxy without it: it may have begun to serve
   * proxies a moment before its Lease was there.
   */
  async #checkComplete(): Promise<void> {
    const { others } = this.#options;
    if (!others?.isWriter) {
      this.#checkAt = undefined;
      return;
    }
    if (this.#followed.size > 0 || this.#checkAt !== undefined) await others.look();
    for (const [key, generation] of others.incomplete()) {
      if (this.#complete.get(key)?.generation === generation) this.recount(key);
    }
    if (this.#checkAt !== undefined && others.readAt >= this.#checkAt) this.#checkAt = undefined;
  }

  /** ServiceEntries of which nothing is pushed are in force as they are. @returns those of which that is not known yet */
  #followUnnamed(): number {
    let awaited = 0;
    for (const [key, since] of this.#coming) {
      if (kindOf(key) !== 'ServiceEntry' || this.#latest === undefined) continue;
      if (this.#options.now() - since < unnamedMs) awaited++;
      else {
        this.#coming.delete(key);
        this.#follow(key, this.#options.configs().byKey.get(key), numberOfVersion(this.#latest.version));
      }
    }
    return awaited;
  }

  /** What of the objects is not as their status says it. */
  async #followAll(turns: Turns): Promise<void> {
    this.#looksAtAll = false;
    const number = numberOfVersion(this.#latest!.version);
    const { set } = this.#options.configs();
    for (const kind of statusKinds) {
      for (const config of set[kind as keyof ConfigSet] as readonly Config[]) {
        const key = configKeyText(config);
        if (!this.#followed.has(key) && !this.#coming.has(key) && !this.#saysAll(key, config))
          this.#follow(key, config, number);
        await turns.rest();
      }
    }
    for (const key of this.#mistakes.keys()) this.#due.note(key, false, this.#options.now());
  }

  /** Whether the object's status says of this very version that all have it, and nothing else. */
  #saysAll(key: string, config: Config): boolean {
    const conditions = this.#options.objects.toldOf(key)?.conditions;
    if (conditions === undefined) return true;
    const reconciled = conditions.get(reconciledCondition);
    const generation = generationOf(config);
    const warns = conditions.has(partialCondition);
    if (this.#warnings.isKnown && warns !== (this.#warnings.of(key) !== undefined)) return false;
    const isAlone = conditions.size === (warns ? 2 : 1);
    return isAlone && reconciled?.status === 'True' && reconciled.observedGeneration === generation;
  }

  async #compare(turns: Turns): Promise<void> {
    const rejections = this.#rejections.byObject();
    for (const key of rejections.keys()) this.#followRejected(key);
    const progress = new ProxyProgress();
    for (const proxy of this.#options.proxies()) {
      progress.add(proxy);
      await turns.rest();
    }
    const context = this.#latest;
    if (context === undefined) return;
    const judge = (key: string): void => {
      const followed = this.#followed.get(key);
      if (followed === undefined) return;
      const { config, number } = followed;
      const count = progress.countOf((shape) => typesConcerned(config, shape, context), number);
      this.#judge(key, followed, count, rejections.get(key));
    };
    // What is rejected, and what came last, is looked at each time; of the rest, which may be all objects of a cluster, a part.
    const others = [...this.#followed.keys()];
    const first = new Set([...[...rejections.keys()].slice(0, mostRejected), ...others.splice(-mostNewest)]);
    for (const key of first) {
      judge(key);
      await turns.rest();
    }
    const until = performance.now() + judgeMs;
    for (let left = others.length; left > 0 && performance.now() < until; left--) {
      this.#next = (this.#next + 1) % others.length;
      judge(others[this.#next]!);
      await turns.rest();
    }
  }

  // ---- one object

  #follow(key: string, config: Config | undefined, number: number): void {
    const generation = config && generationOf(config);
    const before = this.#followed.get(key);
    this.#followed.delete(key);
    this.#complete.delete(key);
    if (config === undefined || generation === undefined) return;
    this.#followed.set(key, {
      ...{ config, generation, number, mustTell: before?.mustTell ?? false },
      ...{ followedAt: this.#options.now(), toldAt: this.#options.now() },
      ...{ distribution: undefined, told: undefined },
    });
  }

  /** The object was in all proxies, and a proxy rejects it now. By the latest context, such a proxy does not count as up to date. */
  #followRejected(key: string): void {
    if (this.#followed.has(key) || this.#latest === undefined) return;
    const config = this.#options.configs().byKey.get(key);
    if (config !== undefined && !this.#coming.has(key)) {
      this.#follow(key, config, numberOfVersion(this.#latest.version));
    }
  }

  #judge(key: string, followed: Followed, count: Count, rejections: RejectionsOfObject | undefined): void {
    const { generation, told } = followed;
    const { resource, reason } = rejections?.blame ?? { resource: '', reason: '' };
    const rejection = rejections && { proxies: rejections.proxies, of: count.concerned, resource, reason };
    const own = { generation, ...count };
    this.#own.note(key, own, this.#options.now());
    const total = totalOf(key, own, this.#options.others, followed.followedAt);
    if (total === undefined) return;
    const isThere = total.concerned > 0;
    const now: Distribution = { generation, ...total, ...(rejection && { rejection }) };
    if (!isThere && now.unreported && this.#isUnmentioned(key, followed)) {
      if (this.#options.now() - followed.toldAt >= settlingMs) this.#followed.delete(key);
      return;
    }
    // Who rejected it is gone, and nobody else has taken it since: it is not mended.
    const isUnmended = told?.rejection !== undefined && rejection === undefined && !(isThere && isComplete(now));
    if (isUnmended && !followed.mustTell) return;
    followed.distribution = now;
    if (isComplete(now)) this.#completed(key, followed, now);
    else if (followed.mustTell || this.#isWorthTelling(followed, now)) {
      this.#note(key, followed, now, followed.mustTell || now.rejection !== undefined);
    }
  }

  #completed(key: string, followed: Followed, now: Distribution): void {
    if (now.concerned === 0) {
      if (this.#options.now() - this.#begun < settlingMs && followed.told === undefined && !followed.mustTell) return;
      if (this.#isUnmentioned(key, followed)) {
        this.#followed.delete(key);
        return;
      }
    }
    if (followed.mustTell || !isSame(followed.told, now)) this.#note(key, followed, now, true);
    this.#followed.delete(key);
    setBounded(this.#complete, key, now, mostComplete);
    if (this.#options.others?.isWriter) this.#checkAt = this.#options.now() + presenceMs;
  }

  /** No status says anything of it: an object that no proxy here has gets none. */
  #isUnmentioned(key: string, { told, mustTell }: Followed): boolean {
    return (this.#options.objects.toldOf(key)?.conditions.size ?? 0) === 0 && told === undefined && !mustTell;
  }

  #isWorthTelling({ told, toldAt }: Followed, now: Distribution): boolean {
    if (now.rejection !== undefined && told?.rejection === undefined) return true;
    return !isSame(told, now) && this.#options.now() - toldAt >= restBetweenMs;
  }

  #note(key: string, followed: Followed, now: Distribution, isEdge: boolean): void {
    followed.told = now;
    followed.toldAt = this.#options.now();
    followed.mustTell = false;
    this.#due.note(key, isEdge, this.#options.now());
  }

  #mistaken(key: string, mistake: Mistake | undefined): void {
    const had = this.#mistakes.delete(key);
    if (mistake !== undefined) this.#mistakes.set(key, mistake);
    else if (!had) return;
    this.#due.note(key, true, this.#options.now());
    const config = this.#options.configs().byKey.get(key);
    if (mistake === undefined && !this.#coming.has(key) && this.#latest !== undefined) {
      // It may be again what it was before the mistake: then nothing changes.
      this.#follow(key, config, numberOfVersion(this.#latest.version));
    }
    const followed = this.#followed.get(key);
    if (mistake === undefined && followed !== undefined) followed.mustTell = true;
    this.#stir();
  }

  /** What is in force is what its newest version means. */
  #sameInEffect(key: string): void {
    const config = this.#options.configs().byKey.get(key);
    const latest = this.#latest;
    if (this.#coming.has(key) || config === undefined || latest === undefined || !hasStatus(config.kind)) return;
    const followed = this.#followed.get(key);
    const generation = generationOf(config);
    const isSame = followed?.config.uid === config.uid;
    if (followed !== undefined && isSame && generation !== undefined && !needsPush(followed.config, config)) {
      if (followed.generation === generation) return;
      followed.generation = generation;
      followed.followedAt = this.#options.now();
    } else if (this.#saysAll(key, config)) return;
    else this.#follow(key, config, numberOfVersion(latest.version));
    this.#stir();
  }

  // ---- telling

  #stir(): void {
    if (this.#isStirred) return;
    this.#isStirred = true;
    for (const stirred of this.#watchers) stirred();
  }
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
