/**
 * What metrics say of the whole mesh: found in slices of the event loop some time after it has changed, or when somebody asks,
 * so that a scrape reads what is there. At most a tenth of the time goes into it, however often the mesh changes; and while
 * nobody asks, one look in a while does for all changes, so that pushes have the time to themselves.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { hasNoProvider } from '../../../networking/index.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { ObjectWarning } from '../../distribution/object-warnings.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import { Slices } from '../../xds/turns/slices.ts';
import type { ServedProxy } from './find-diagnostics.ts';
import { type PatchCount, patchCounts } from './patch-status.ts';
import { type PushStatus, statusInPieces } from './push-status.ts';
import { objectWarnings } from './status-warnings.ts';

export interface MeshFindings {
  /** How many diagnostics there are, by metric. */
  readonly counts: ReadonlyMap<string, number>;
  /** `Gateway/namespace/name server port`. */
  readonly rejectedServers: readonly string[];
  readonly patches: readonly PatchCount[];
  /** Objects of the cluster that take effect only in part, by `Kind/namespace/name`. */
  readonly warnings: ReadonlyMap<string, ObjectWarning>;
  /** Whether other replicas may know of a diagnostic that it does not hold. */
  readonly dependsOnReplicas: boolean;
  /** CUSTOM policies that refuse all they match. */
  readonly policiesWithoutProvider: number;
  /** Pods that endpoints name and that are not known yet. */
  readonly pendingPods: number;
  readonly endpointsWithoutPod: number;
  /** Connected proxies by version. */
  readonly versions: ReadonlyMap<string, number>;
}

export interface DiagnosticsSources {
  readonly state: MeshState;
  readonly nodes: () => Iterable<ServedProxy>;
  readonly connectedVersions: () => Iterable<string>;
  /** Whether no other replica serves proxies; absent: there is none. */
  readonly isOnlyReplica?: () => boolean;
  /** Told after each look. */
  readonly found: (findings: MeshFindings) => void;
}

/** How much longer than a look takes there is none after it. */
const restFactor = 9;
const longestRestMs = 5_000;
/** A change waits so long for others, or for somebody who asks: scrapes come every 15 s or more. */
const unaskedMs = 5_000;
/** While a diagnostic depends on which replicas there are, which changes without a change of the mesh. */
const replicasMs = 30_000;
/** How long a scrape waits for a look that is due or going on; then it says what was found before. */
const longestWaitMs = 3_000;

type Phase =
  | { readonly at: 'rest' }
  | { readonly at: 'due'; readonly timer: NodeJS.Timeout; readonly inMs: number }
  | { readonly at: 'looking'; readonly again: boolean };

export class MeshDiagnostics {
  readonly #sources: DiagnosticsSources;
  #phase: Phase = { at: 'rest' };
  #dependsOnReplicas = false;
  /** Looks that were begun. */
  #begun = 0;
  /** What the last one took of the program's time. */
  #spentMs = 0;
  #mayBeginAt = 0;
  /** The mesh that was looked at last. */
  #seen: { readonly context: unknown; readonly objects: unknown } | undefined;
  #look: Iterator<void, MeshFindings> | undefined;
  readonly #slices = new Slices(() => this.#piece());
  #ended = Promise.withResolvers<void>();
  /** Why the last look came to no end: told to whoever asks. */
  #failure: { readonly error: unknown } | undefined;

  constructor(sources: DiagnosticsSources) {
    this.#sources = sources;
  }

  /** Something may be another now. Called for each response that is sent: almost always it is known already. */
  stale(): void {
    if (this.#phase.at === 'due') {
      if (this.#phase.inMs > unaskedMs) this.#hasten(this.#phase.timer, unaskedMs);
      return;
    }
    if (this.#phase.at === 'looking') this.#phase = { at: 'looking', again: true };
    else this.#makeDue(unaskedMs);
  }

  /**
   * When what is told is of now, or soon, for those who cannot wait for it.
   *
   * @throws what the last look failed with
   */
  async settled(): Promise<void> {
    const { context, configs, objects = configs.set } = this.#sources.state;
    if (this.#seen?.context !== context || this.#seen?.objects !== objects) this.stale();
    const isStale = this.#phase.at === 'looking' || (this.#phase.at === 'due' && this.#phase.inMs <= unaskedMs);
    if (isStale) {
      // A mesh that changes all the time is always due again: one look at it as it is now is enough.
      const wanted = this.#phase.at === 'looking' && !this.#phase.again ? this.#begun : this.#begun + 1;
      const until = performance.now() + longestWaitMs;
      while (!this.#isEnded(wanted) && performance.now() < until) {
        if (this.#phase.at === 'due') this.#hasten(this.#phase.timer, 0);
        await Promise.race([this.#ended.promise, sleep(until - performance.now(), undefined, { ref: false })]);
      }
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #isEnded(look: number): boolean {
    return this.#begun > look || (this.#begun === look && this.#phase.at !== 'looking');
  }

  #makeDue(inMs: number): void {
    const timer = setTimeout(() => this.#begin(), Math.max(inMs, this.#mayBeginAt - performance.now())).unref();
    this.#phase = { at: 'due', timer, inMs };
  }

  /** Starts the next look earlier. */
  #hasten(timer: NodeJS.Timeout, inMs: number): void {
    clearTimeout(timer);
    this.#makeDue(inMs);
  }

  #begin(): void {
    this.#phase = { at: 'looking', again: false };
    this.#begun++;
    this.#spentMs = 0;
    const { context, configs, objects = configs.set } = this.#sources.state;
    this.#seen = { context, objects };
    this.#look = lookThrough(this.#sources);
    this.#slices.begin();
  }

  /** @returns whether there is more */
  #piece(): boolean {
    const began = performance.now();
    try {
      const { done, value } = this.#look!.next();
      if (done !== true) return true;
      this.#dependsOnReplicas = value.dependsOnReplicas;
      this.#sources.found(value);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = { error };
    } finally {
      this.#spentMs += performance.now() - began;
    }
    this.#end();
    return false;
  }

  #end(): void {
    this.#look = undefined;
    this.#mayBeginAt = performance.now() + Math.min(longestRestMs, restFactor * this.#spentMs);
    const again = this.#phase.at === 'looking' && this.#phase.again;
    this.#phase = { at: 'rest' };
    this.#ended.resolve();
    this.#ended = Promise.withResolvers<void>();
    if (again) this.#makeDue(unaskedMs);
    else if (this.#dependsOnReplicas) this.#makeDue(replicasMs);
  }
}

function* lookThrough({ state, nodes, connectedVersions, isOnlyReplica }: DiagnosticsSources): Steps<MeshFindings> {
  const { context, configs } = state;
  const status: PushStatus = yield* statusInPieces(state, nodes());
  const warnings = yield* objectWarnings(status, configs, isOnlyReplica?.());
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
    counts: new Map(Object.entries(status).map(([metric, found]) => [metric, Object.keys(found).length])),
    rejectedServers: Object.keys(status.pilot_gateway_servers_rejected ?? {}),
    patches,
    warnings,
    dependsOnReplicas: Object.values(status.pilot_config_warnings ?? {}).some(({ isOfReplica }) => isOfReplica),
    policiesWithoutProvider,
    ...state.registries.counts,
    versions,
  };
}
