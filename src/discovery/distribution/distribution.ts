/** Computes which connected proxies have applied each object of a cluster, and which objects Envoy rejects. */
import type { DistributionSummary } from '../../../machines/discovery/distribution/distribution.machine.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { needsPush } from '../../model/config/config-changes.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { Turns } from '../../runtime/turns.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import { affectedTypes, isNamedByKeys } from './affected-proxies.ts';
import { ChangedObjects } from './changed-objects.ts';
import type { ObjectDistributionOptions } from './distribution-options.ts';
import { type DueListener, DueObjects } from './due-objects.ts';
import { EnvoyRejections, type RejectionsOfObject } from './envoy-rejections.ts';
import { type FollowedObject, isSameProgress } from './followed-object.ts';
import {
  isComplete,
  type ObjectError,
  type ObjectFindings,
  type ObjectProgress,
  partialCondition,
  reconciledCondition,
} from './object-findings.ts';
import { type ObjectWarning, ObjectWarnings } from './object-warnings.ts';
import { type FollowedProxy, numberOfVersion, type ProxyCount, ProxyProgress } from './proxy-progress.ts';
import { RejectionCauseFinder } from './rejection-cause-finder.ts';
import { OwnCounts, totalOf } from './replica-report.ts';
import { generationOf, hasStatus, statusKinds } from './status-objects.ts';

/** Non-urgent updates have this minimum interval. */
const minUpdateIntervalMs = 10_000;
/** Delay after which a changed ServiceEntry is evaluated without a push that names it. If its services are unchanged, no push names it. */
const unnamedWaitMs = 10_000;
/** Maximum time for proxies to reconnect to a new control plane. Until then, an object without proxies is not complete. */
const settlingMs = 60_000;
/** Time of two Lease renewals, within which a replica that serves proxies reports its counts. */
const presenceMs = 4_000;
const maxTraceMs = 20;
/** CPU time for objects that are neither recent nor rejected. An object may take a millisecond if there are many proxy shapes. */
const maxEvaluationMs = 50;
const maxNewest = 64;
const maxRejected = 1_000;
const maxCompleteObjects = 4_096;

export class ObjectDistribution {
  readonly #options: ObjectDistributionOptions;
  readonly #rejections = new EnvoyRejections<FollowedProxy>();
  readonly #steps = new ChangedObjects();
  /** Objects that are not in the last push context yet, with the time of the change. */
  readonly #unpublishedSince = new Map<string, number>();
  readonly #followedObjects = new Map<string, FollowedObject>();
  readonly #complete = new Map<string, ObjectProgress>();
  readonly #errors = new Map<string, ObjectError>();
  readonly #warnings = new ObjectWarnings();
  readonly #watchers = new Set<() => void>();
  readonly #dueObjects = new DueObjects();
  readonly #ownCounts: OwnCounts;
  readonly #causes: RejectionCauseFinder;
  readonly #startedAt: number;
  #latestContext: PushContext | undefined;
  #mustCompareAll = true;
  #isNotified = false;
  /** Reports read from this time on include all replicas that served proxies when the last object became complete. */
  #checkAt: number | undefined;
  #next = 0;

  constructor(options: ObjectDistributionOptions) {
    this.#options = options;
    this.#startedAt = options.now();
    this.#ownCounts = new OwnCounts(options.revision ?? '');
    this.#causes = new RejectionCauseFinder({
      ...{ options, changedObjects: this.#steps },
      isRejected: (key) => this.#followedObjects.get(key)?.lastReport?.rejection !== undefined,
    });
    options.objects.onErrors((key, error) => this.#setError(key, error));
  }

  objectsComposed(touchedKeys: Iterable<string>, changedKeys: ReadonlySet<string>): void {
    for (const key of touchedKeys) {
      if (!hasStatus(kindOf(key))) continue;
      if (changedKeys.has(key)) this.#unpublishedSince.set(key, this.#options.now());
      else this.#updateGeneration(key);
    }
  }

  onPublished(published: Publication): void {
    const { context, forced, changedKeys, configs } = published;
    const isFirst = this.#latestContext === undefined;
    this.#latestContext = context;
    const number = numberOfVersion(context.version);
    const objects = new Set<string>();
    for (const key of this.#unpublishedSince.keys()) {
      const config = configs.byKey.get(key);
      const isIncluded = forced || config === undefined || isNamedByKeys(config, changedKeys);
      if (!isIncluded) continue;
      objects.add(key);
      this.#dueObjects.resetLimit(key);
      // A change while the push context is built belongs to the next one, unless it has no effect.
      const currentConfig = this.#options.configs().byKey.get(key);
      if (currentConfig === config || (currentConfig && config && !needsPush(config, currentConfig)))
        this.#unpublishedSince.delete(key);
      // Skips objects of the first push, because their statuses may already be correct.
      if (!isFirst)
        this.#followObject(
          key,
          currentConfig !== undefined && !this.#unpublishedSince.has(key) ? currentConfig : config,
          number,
        );
    }
    this.#steps.add({ context, forced, changedKeys: new Set([...changedKeys, ...objects]) });
    if (objects.size > 0 || this.#mustCompareAll) this.#notifyWatchers();
  }

  onRejected(proxy: FollowedProxy, typeUrl: string): void {
    if (this.#rejections.add(proxy, typeUrl)) this.#notifyWatchers();
  }

  /** Called when a proxy accepts a type that it rejected before. */
  onAccepted(proxy: FollowedProxy, typeUrl: string): void {
    if (this.#rejections.remove(proxy, typeUrl)) this.#notifyWatchers();
  }

  disconnected(proxy: FollowedProxy): void {
    if (this.#rejections.disconnected(proxy)) this.#notifyWatchers();
  }

  /** Called when another replica wrote a different status. */
  repeatReport(key: string): void {
    const latest = this.#latestContext;
    if (latest === undefined) return;
    const complete = this.#complete.get(key);
    // A replica that does not write statuses counts only its own proxies.
    const areReplicasCounted = complete !== undefined && !this.#options.otherReplicas?.isWriter;
    if (!this.#followedObjects.has(key) && !areReplicasCounted) {
      this.#followObject(key, this.#options.configs().byKey.get(key), numberOfVersion(latest.version));
    }
    const followedObject = this.#followedObjects.get(key);
    // The last count is reported until the next one.
    if (followedObject !== undefined && complete !== undefined) {
      followedObject.distribution = complete;
      followedObject.lastReport = complete;
    }
    if (followedObject !== undefined && followedObject.distribution === undefined) followedObject.mustReport = true;
    else this.#dueObjects.add(key, true, this.#options.now());
    this.#notifyWatchers();
  }

  /** Counts a complete object again, because its status does not contain current counts of this replica. */
  recount(key: string): void {
    const latest = this.#latestContext;
    if (latest === undefined || this.#followedObjects.has(key) || this.#unpublishedSince.has(key)) return;
    this.#followObject(key, this.#options.configs().byKey.get(key), numberOfVersion(latest.version));
    this.#notifyWatchers();
  }

  setWarnings(warningsByObject: ReadonlyMap<string, ObjectWarning>): void {
    // Statuses may contain warnings of an earlier process.
    if (!this.#warnings.hasDiagnostics) this.compareAllStatuses();
    const changedKeys = this.#warnings.replace(warningsByObject);
    for (const key of changedKeys) this.#dueObjects.add(key, true, this.#options.now());
    if (changedKeys.length > 0) this.#notifyWatchers();
  }

  /** Called when another replica may have written statuses. */
  compareAllStatuses(): void {
    this.#mustCompareAll = true;
    this.#notifyWatchers();
  }

  /** The listener is called at most once before each evaluation. */
  onChange(listener: () => void): () => void {
    this.#watchers.add(listener);
    if (this.#isNotified) listener();
    return () => void this.#watchers.delete(listener);
  }

  onDue(listener: DueListener): void {
    this.#dueObjects.onDue(listener);
  }

  findingsOf(key: string): ObjectFindings {
    const distribution = this.#followedObjects.get(key)?.distribution ?? this.#complete.get(key);
    const error = this.#errors.get(key);
    const warning = this.#warnings.hasDiagnostics ? (this.#warnings.warningOf(key) ?? 'none') : undefined;
    const config = this.#options.configs().byKey.get(key);
    const generation = config && generationOf(config);
    return {
      ...{ ...(distribution && { distribution }), ...(error && { error }) },
      ...{ ...(warning && { warning }), ...(generation !== undefined && { generation }) },
    };
  }

  /** Includes objects that are invalid or take only partial effect. */
  get unfinishedKeys(): Iterable<string> {
    return new Set([...this.#followedObjects.keys(), ...this.#errors.keys(), ...this.#warnings.keys]);
  }

  /** Returns counts for the replica that writes the statuses. */
  report(): string {
    return this.#ownCounts.report(this.#options.now(), this.#options.objects);
  }

  async evaluate(): Promise<DistributionSummary> {
    const workTurns = new Turns();
    const start = this.#options.now();
    this.#isNotified = false;
    if (this.#mustCompareAll && this.#latestContext !== undefined) await this.#followAllObjects(workTurns);
    const unnamedCount = this.#followUnnamedObjects();
    const traceDeadline = performance.now() + maxTraceMs;
    const isTraced = this.#rejections.trace(
      (proxy, typeUrl) => this.#causes.causeOf(proxy, typeUrl),
      () => performance.now() < traceDeadline,
    );
    await this.#checkCompleteObjects();
    if (this.#followedObjects.size > 0 || !this.#rejections.isEmpty) await this.#compare(workTurns);
    this.#dueObjects.flush();
    const unfinishedObjects =
      this.#followedObjects.size + unnamedCount + (isTraced ? 0 : 1) + (this.#checkAt === undefined ? 0 : 1);
    return { unfinished: unfinishedObjects, tookMs: Math.ceil(this.#options.now() - start) };
  }

  /** Another replica may have started to serve proxies just before its Lease existed. */
  async #checkCompleteObjects(): Promise<void> {
    const { otherReplicas } = this.#options;
    if (!otherReplicas?.isWriter) {
      this.#checkAt = undefined;
      return;
    }
    if (this.#followedObjects.size > 0 || this.#checkAt !== undefined) await otherReplicas.refresh();
    for (const [key, generation] of otherReplicas.incompleteObjects()) {
      if (this.#complete.get(key)?.generation === generation) this.recount(key);
    }
    if (this.#checkAt !== undefined && otherReplicas.readAt >= this.#checkAt) this.#checkAt = undefined;
  }

  /** @returns the number of changed ServiceEntries that a push may still name */
  #followUnnamedObjects(): number {
    let awaitedCount = 0;
    for (const [key, since] of this.#unpublishedSince) {
      if (kindOf(key) !== 'ServiceEntry' || this.#latestContext === undefined) continue;
      if (this.#options.now() - since < unnamedWaitMs) awaitedCount++;
      else {
        this.#unpublishedSince.delete(key);
        this.#followObject(key, this.#options.configs().byKey.get(key), numberOfVersion(this.#latestContext.version));
      }
    }
    return awaitedCount;
  }

  async #followAllObjects(workTurns: Turns): Promise<void> {
    this.#mustCompareAll = false;
    const number = numberOfVersion(this.#latestContext!.version);
    const { set } = this.#options.configs();
    for (const kind of statusKinds) {
      for (const config of set[kind as keyof ConfigSet] as readonly Config[]) {
        const key = configKeyText(config);
        if (!this.#followedObjects.has(key) && !this.#unpublishedSince.has(key) && !this.#isStatusCurrent(key, config))
          this.#followObject(key, config, number);
        await workTurns.waitIfTurnEnded();
      }
    }
    for (const key of this.#errors.keys()) this.#dueObjects.add(key, false, this.#options.now());
  }

  /** Whether the status states only that all proxies have applied this generation, apart from a current warning. */
  #isStatusCurrent(key: string, config: Config): boolean {
    const conditions = this.#options.objects.statusOf(key)?.conditions;
    if (conditions === undefined) return true;
    const reconciled = conditions.get(reconciledCondition);
    const generation = generationOf(config);
    const isWarning = conditions.has(partialCondition);
    if (this.#warnings.hasDiagnostics && isWarning !== (this.#warnings.warningOf(key) !== undefined)) return false;
    const isOnlyCondition = conditions.size === (isWarning ? 2 : 1);
    return isOnlyCondition && reconciled?.status === 'True' && reconciled.observedGeneration === generation;
  }

  async #compare(workTurns: Turns): Promise<void> {
    const rejections = this.#rejections.rejectionsByObject();
    for (const key of rejections.keys()) this.#followRejectedObject(key);
    const progress = new ProxyProgress();
    for (const proxy of this.#options.proxies()) {
      progress.add(proxy);
      await workTurns.waitIfTurnEnded();
    }
    const context = this.#latestContext;
    if (context === undefined) return;
    const evaluateKey = (key: string): void => {
      const followedObject = this.#followedObjects.get(key);
      if (followedObject === undefined) return;
      const { config, number } = followedObject;
      const count = progress.countOf((shape) => affectedTypes(config, shape, context), number);
      this.#evaluateObject(key, followedObject, count, rejections.get(key));
    };
    const remainingKeys = [...this.#followedObjects.keys()];
    const firstKeys = new Set([...[...rejections.keys()].slice(0, maxRejected), ...remainingKeys.splice(-maxNewest)]);
    for (const key of firstKeys) {
      evaluateKey(key);
      await workTurns.waitIfTurnEnded();
    }
    const deadline = performance.now() + maxEvaluationMs;
    for (
      let remainingCount = remainingKeys.length;
      remainingCount > 0 && performance.now() < deadline;
      remainingCount--
    ) {
      this.#next = (this.#next + 1) % remainingKeys.length;
      evaluateKey(remainingKeys[this.#next]!);
      await workTurns.waitIfTurnEnded();
    }
  }

  #followObject(key: string, config: Config | undefined, number: number): void {
    const generation = config && generationOf(config);
    const previous = this.#followedObjects.get(key);
    this.#followedObjects.delete(key);
    this.#complete.delete(key);
    if (config === undefined || generation === undefined) return;
    this.#followedObjects.set(key, {
      ...{ config, generation, number, mustReport: previous?.mustReport ?? false },
      ...{ followedAt: this.#options.now(), reportedAt: this.#options.now() },
      ...{ distribution: undefined, lastReport: undefined },
    });
  }

  /** Follows the object again, because the rejecting proxy has not applied the latest push context. */
  #followRejectedObject(key: string): void {
    if (this.#followedObjects.has(key) || this.#latestContext === undefined) return;
    const config = this.#options.configs().byKey.get(key);
    if (config !== undefined && !this.#unpublishedSince.has(key)) {
      this.#followObject(key, config, numberOfVersion(this.#latestContext.version));
    }
  }

  #evaluateObject(
    key: string,
    followedObject: FollowedObject,
    count: ProxyCount,
    rejections: RejectionsOfObject | undefined,
  ): void {
    const { generation, lastReport } = followedObject;
    const { resource, reason } = rejections?.cause ?? { resource: '', reason: '' };
    const rejection = rejections && { proxies: rejections.proxies, of: count.concerned, resource, reason };
    const ownCount = { generation, ...count };
    this.#ownCounts.record(key, ownCount, this.#options.now());
    const totalCounts = totalOf(key, ownCount, this.#options.otherReplicas, followedObject.followedAt);
    if (totalCounts === undefined) return;
    const affectsProxies = totalCounts.concerned > 0;
    const progress: ObjectProgress = { generation, ...totalCounts, ...(rejection && { rejection }) };
    if (!affectsProxies && progress.unreported && this.#hasNoStatus(key, followedObject)) {
      if (this.#options.now() - followedObject.reportedAt >= settlingMs) this.#followedObjects.delete(key);
      return;
    }
    // The proxies that rejected the object have disconnected and no other proxy has accepted it, so the problem is not resolved.
    const isUnresolved =
      lastReport?.rejection !== undefined && rejection === undefined && !(affectsProxies && isComplete(progress));
    if (isUnresolved && !followedObject.mustReport) return;
    followedObject.distribution = progress;
    if (isComplete(progress)) this.#setComplete(key, followedObject, progress);
    else if (followedObject.mustReport || this.#isWorthReporting(followedObject, progress)) {
      this.#reportDue(key, followedObject, progress, followedObject.mustReport || progress.rejection !== undefined);
    }
  }

  #setComplete(key: string, followedObject: FollowedObject, progress: ObjectProgress): void {
    if (progress.concerned === 0) {
      if (
        this.#options.now() - this.#startedAt < settlingMs &&
        followedObject.lastReport === undefined &&
        !followedObject.mustReport
      )
        return;
      if (this.#hasNoStatus(key, followedObject)) {
        this.#followedObjects.delete(key);
        return;
      }
    }
    if (followedObject.mustReport || !isSameProgress(followedObject.lastReport, progress))
      this.#reportDue(key, followedObject, progress, true);
    this.#followedObjects.delete(key);
    setBounded(this.#complete, key, progress, maxCompleteObjects);
    if (this.#options.otherReplicas?.isWriter) this.#checkAt = this.#options.now() + presenceMs;
  }

  #hasNoStatus(key: string, { lastReport, mustReport }: FollowedObject): boolean {
    return (this.#options.objects.statusOf(key)?.conditions.size ?? 0) === 0 && lastReport === undefined && !mustReport;
  }

  #isWorthReporting({ lastReport, reportedAt }: FollowedObject, progress: ObjectProgress): boolean {
    if (progress.rejection !== undefined && lastReport?.rejection === undefined) return true;
    return !isSameProgress(lastReport, progress) && this.#options.now() - reportedAt >= minUpdateIntervalMs;
  }

  #reportDue(key: string, followedObject: FollowedObject, progress: ObjectProgress, isUrgent: boolean): void {
    followedObject.lastReport = progress;
    followedObject.reportedAt = this.#options.now();
    followedObject.mustReport = false;
    this.#dueObjects.add(key, isUrgent, this.#options.now());
  }

  #setError(key: string, error: ObjectError | undefined): void {
    const hadError = this.#errors.delete(key);
    if (error !== undefined) this.#errors.set(key, error);
    else if (!hadError) return;
    this.#dueObjects.add(key, true, this.#options.now());
    const config = this.#options.configs().byKey.get(key);
    if (error === undefined && !this.#unpublishedSince.has(key) && this.#latestContext !== undefined) {
      // If the object is the same as before the error, no other event causes this.
      this.#followObject(key, config, numberOfVersion(this.#latestContext.version));
    }
    const followedObject = this.#followedObjects.get(key);
    if (error === undefined && followedObject !== undefined) followedObject.mustReport = true;
    this.#notifyWatchers();
  }

  /** A new version of an object can have the same effect. */
  #updateGeneration(key: string): void {
    const config = this.#options.configs().byKey.get(key);
    const latest = this.#latestContext;
    if (this.#unpublishedSince.has(key) || config === undefined || latest === undefined || !hasStatus(config.kind))
      return;
    const followedObject = this.#followedObjects.get(key);
    const generation = generationOf(config);
    const isSameObject = followedObject?.config.uid === config.uid;
    if (
      followedObject !== undefined &&
      isSameObject &&
      generation !== undefined &&
      !needsPush(followedObject.config, config)
    ) {
      if (followedObject.generation === generation) return;
      followedObject.generation = generation;
      followedObject.followedAt = this.#options.now();
    } else if (this.#isStatusCurrent(key, config)) return;
    else this.#followObject(key, config, numberOfVersion(latest.version));
    this.#notifyWatchers();
  }

  #notifyWatchers(): void {
    if (this.#isNotified) return;
    this.#isNotified = true;
    for (const listener of this.#watchers) listener();
  }
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
