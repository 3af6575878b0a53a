/** Diagnostics of the whole mesh for metrics. A scan uses at most a tenth of the time, however often the mesh changes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { hasNoProvider } from '../../../networking/index.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { ObjectWarning } from '../../distribution/object-warnings.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import { SliceScheduler } from '../../xds/turns/slices.ts';
import { translationProblemKey } from './config-warnings.ts';
import type { ServedProxy } from './find-diagnostics.ts';
import { type PatchCount, patchCounts } from './patch-status.ts';
import { diagnosticSteps, type PushStatus } from './push-status.ts';
import { loggableWarnings, objectWarnings } from './status-warnings.ts';
import type { LoggableWarning } from './warning-log.ts';

export interface MeshFindings {
  readonly counts: ReadonlyMap<string, number>;
  /** `Gateway/namespace/name server port`. */
  readonly rejectedServers: readonly string[];
  readonly patches: readonly PatchCount[];
  /** Objects of the cluster that take only partial effect, by `Kind/namespace/name`. */
  readonly warnings: ReadonlyMap<string, ObjectWarning>;
  readonly loggableWarnings: readonly LoggableWarning[];
  /** Whether other replicas may have other results for a diagnostic. */
  readonly dependsOnReplicas: boolean;
  /** CUSTOM policies without a provider, which deny all matching requests. */
  readonly policiesWithoutProvider: number;
  readonly pendingPods: number;
  readonly endpointsWithoutPod: number;
  readonly versions: ReadonlyMap<string, number>;
}

export interface DiagnosticsSources {
  readonly state: MeshState;
  readonly nodes: () => Iterable<ServedProxy>;
  readonly connectedVersions: () => Iterable<string>;
  /** Whether no other replica serves proxies; `undefined` without replicas. */
  readonly isOnlyReplica?: () => boolean;
  readonly onFindings: (findings: MeshFindings) => void;
}

/** Delay after a scan, as a multiple of its duration. */
const pauseFactor = 9;
const maxPauseMs = 5_000;
/** Without a scrape, changes are coalesced for this time. Scrape intervals are 15 s or more. */
const coalesceMs = 5_000;
/** Scan interval while a diagnostic depends on other replicas, which change independently of the mesh. */
const replicasMs = 30_000;
/** A scrape that waited this long for a scan uses the previous results. */
const maxWaitMs = 3_000;

type Phase =
  | { readonly state: 'rest' }
  | { readonly state: 'due'; readonly timer: NodeJS.Timeout; readonly delayMs: number }
  | { readonly state: 'looking'; readonly isRescanNeeded: boolean };

export class MeshDiagnostics {
  readonly #sources: DiagnosticsSources;
  #phase: Phase = { state: 'rest' };
  #dependsOnReplicas = false;
  #startedScans = 0;
  #spentMs = 0;
  #nextStartAt = 0;
  #scannedState: { readonly context: unknown; readonly objects: unknown } | undefined;
  #scan: Iterator<void, MeshFindings> | undefined;
  readonly #slices = new SliceScheduler(() => this.#runSlice());
  #endedPromise = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  constructor(sources: DiagnosticsSources) {
    this.#sources = sources;
  }

  /** Call after any change. Must be fast, because it is called for each response, usually when a scan is already due. */
  markStale(): void {
    if (this.#phase.state === 'due') {
      if (this.#phase.delayMs > coalesceMs) this.#advanceTimer(this.#phase.timer, coalesceMs);
      return;
    }
    if (this.#phase.state === 'looking') this.#phase = { state: 'looking', isRescanNeeded: true };
    else this.#scheduleScan(coalesceMs);
  }

  /**
   * Resolves when the diagnostics are current, or after a timeout.
   *
   * @throws the error of the last scan
   */
  async waitUntilIdle(): Promise<void> {
    const { context, configs, objects = configs.set } = this.#sources.state;
    if (this.#scannedState?.context !== context || this.#scannedState?.objects !== objects) this.markStale();
    const isStale =
      this.#phase.state === 'looking' || (this.#phase.state === 'due' && this.#phase.delayMs <= coalesceMs);
    if (isStale) {
      // Waits for only one scan of the current state, because a mesh that changes continuously is always stale.
      const awaitedScan =
        this.#phase.state === 'looking' && !this.#phase.isRescanNeeded ? this.#startedScans : this.#startedScans + 1;
      const deadline = performance.now() + maxWaitMs;
      while (!this.#isEnded(awaitedScan) && performance.now() < deadline) {
        if (this.#phase.state === 'due') this.#advanceTimer(this.#phase.timer, 0);
        await Promise.race([
          this.#endedPromise.promise,
          sleep(deadline - performance.now(), undefined, { ref: false }),
        ]);
      }
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #isEnded(scan: number): boolean {
    return this.#startedScans > scan || (this.#startedScans === scan && this.#phase.state !== 'looking');
  }

  #scheduleScan(delayMs: number): void {
    const timer = setTimeout(() => this.#startScan(), Math.max(delayMs, this.#nextStartAt - performance.now())).unref();
    this.#phase = { state: 'due', timer, delayMs };
  }

  #advanceTimer(timer: NodeJS.Timeout, delayMs: number): void {
    clearTimeout(timer);
    this.#scheduleScan(delayMs);
  }

  #startScan(): void {
    this.#phase = { state: 'looking', isRescanNeeded: false };
    this.#startedScans++;
    this.#spentMs = 0;
    const { context, configs, objects = configs.set } = this.#sources.state;
    this.#scannedState = { context, objects };
    this.#scan = scanMesh(this.#sources);
    this.#slices.start();
  }

  #runSlice(): boolean {
    const startedAt = performance.now();
    try {
      const { done, value } = this.#scan!.next();
      if (done !== true) return true;
      this.#dependsOnReplicas = value.dependsOnReplicas;
      this.#sources.onFindings(value);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = { error };
    } finally {
      this.#spentMs += performance.now() - startedAt;
    }
    this.#endScan();
    return false;
  }

  #endScan(): void {
    this.#scan = undefined;
    this.#nextStartAt = performance.now() + Math.min(maxPauseMs, pauseFactor * this.#spentMs);
    const shouldRepeat = this.#phase.state === 'looking' && this.#phase.isRescanNeeded;
    this.#phase = { state: 'rest' };
    this.#endedPromise.resolve();
    this.#endedPromise = Promise.withResolvers<void>();
    if (shouldRepeat) this.#scheduleScan(coalesceMs);
    else if (this.#dependsOnReplicas) this.#scheduleScan(replicasMs);
  }
}

function* scanMesh({ state, nodes, connectedVersions, isOnlyReplica }: DiagnosticsSources): Steps<MeshFindings> {
  const { context, configs } = state;
  const status: PushStatus = yield* diagnosticSteps(state, nodes());
  const warnings = yield* objectWarnings(status, configs, isOnlyReplica?.());
  const logged = new Set(Array.from(state.translationProblems ?? [], translationProblemKey));
  const warningsToLog = yield* loggableWarnings(status, configs, logged, isOnlyReplica?.());
  const patches: PatchCount[] = [];
  for (const filter of configs.set.EnvoyFilter) {
    patches.push(...patchCounts(filter));
    yield;
  }
  let policiesWithoutProvider = 0;
  for (const policy of context ? configs.set.AuthorizationPolicy : []) {
    if (hasNoProvider(policy, context!)) policiesWithoutProvider++;
    yield;
  }
  const versions = new Map<string, number>();
  for (const version of connectedVersions()) {
    versions.set(version, (versions.get(version) ?? 0) + 1);
    yield;
  }
  return {
    counts: new Map(Object.entries(status).map(([metric, onFindings]) => [metric, Object.keys(onFindings).length])),
    rejectedServers: Object.keys(status.pilot_gateway_servers_rejected ?? {}),
    patches,
    warnings,
    loggableWarnings: warningsToLog,
    dependsOnReplicas: Object.values(status.pilot_config_warnings ?? {}).some(({ isOfReplica }) => isOfReplica),
    policiesWithoutProvider,
    ...state.registries.counts,
    versions,
  };
}
