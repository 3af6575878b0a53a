/**
 * Make before break for the explorer: the real stream with its chart, and a model of Envoy that warms clusters and acknowledges
 * CDS when none warms any more. Requests and responses may be late, in both directions.
 */
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import type { RolloutRules } from '../../machines/discovery/xds/rollout-rules.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';
import { defaultMakeBeforeBreakMs, defaultRemovalDelayMs } from '../../src/discovery/xds/ads-limits.ts';
import type { EncodedResource } from '../../src/discovery/xds/resource-source.ts';
import { DepartedClusters } from '../../src/discovery/xds/rollout/departed-clusters.ts';
import { AdsWorld } from './ads-world.ts';
import { limitedMark, ScriptedSource } from './scripted-source.ts';
import { VirtualClock } from './virtual-clock.ts';
import { WarmingEnvoy } from './warming-envoy.ts';

/**
 * What changes: the route moves to a new cluster (with endpoints or a DNS name) and the old one is removed, or only a cluster changes (which may
 * fetch a new secret), or only its endpoints. `flap`: the route moves between two clusters, only one of which is configured at a time, each always in
 * the same version.
 */
export type RolloutChange = 'replace' | 'flap' | 'add' | 'dns' | 'update' | 'secret' | 'endpoints';

/**
 * Envoy rejects a response, or its stream is reset, possibly because the control plane restarts and loses its state; or a cluster never
 * becomes usable.
 */
export type RolloutFault = 'reject' | 'reset' | 'restart' | 'stuck';

export interface RolloutWorldOptions {
  readonly isDelta: boolean;
  readonly changes: number;
  readonly faults: number;
  readonly kinds: readonly RolloutChange[];
  /** Possible faults (default: all but `restart`). */
  readonly faultKinds?: readonly RolloutFault[];
  readonly rules?: Partial<RolloutRules>;
  /** Choices made before the exploration. */
  readonly initialClusters?: readonly string[];
}

export class RolloutWorld implements World {
  readonly violations: InvariantViolation[] = [];
  readonly isEnding = false;
  readonly #options: RolloutWorldOptions;
  readonly #source = new ScriptedSource();
  readonly #clock = new VirtualClock();
  readonly #envoy: WarmingEnvoy;
  #departedClusters = new DepartedClusters(45_000);
  /** Clusters that a route's content names. */
  readonly #namedClusters = new Map<string, string>();
  #adsWorld: AdsWorld;
  #isStarted = false;
  #wasReset = false;
  #changes = 0;
  #faults = 0;
  #createdClusters = 0;
  #target = 'c0';
  readonly #awaitedSince = new Map<string, number>();
  /** Clusters that the server has given up on any stream. */
  readonly #abandonedClusters = new Set<string>();
  readonly #stuckClusters = new Set<string>();
  /** Clusters and assignments that the route switches between, by type URL and name. */
  readonly #flappingResources = new Map<string, EncodedResource>();

  constructor(options: RolloutWorldOptions) {
    this.#options = options;
    this.#envoy = new WarmingEnvoy({
      ...{ isDelta: options.isDelta, source: this.#source, clock: this.#clock },
      clusterOf: (route) => this.#namedClusters.get(route),
      fail: (invariant, detail) => this.#fail(invariant, detail),
    });
    this.#source.set(clusterType, 'c0');
    this.#source.set(endpointType, 'c0');
    this.#setRoute('c0');
    this.#adsWorld = this.#connect();
    // Envoy subscribes to listeners and routes when all clusters are warm.
    this.#envoy.subscribe(false, [clusterType]);
    this.#settle();
    this.#envoy.subscribe(false, [routeType]);
    this.#settle();
    this.#isStarted = true;
    for (const choice of options.initialClusters ?? []) this.apply(choice);
    this.#changes = options.changes;
    this.#faults = options.faults;
  }

  #settle(): void {
    const isExchange = ({ name }: WorldChoice): boolean => name === 'read' || name === 'deliver';
    for (let next = this.choices().find(isExchange); next !== undefined; next = this.choices().find(isExchange)) {
      this.apply(next.name);
    }
  }

  get spawnCount(): number {
    return this.#envoy.responses;
  }

  /** Number of changed versions of a cluster that the client received. */
  sentTimes(cluster: string): number {
    return this.#envoy.receivedCounts.get(cluster) ?? 0;
  }

  get isGoalReached(): boolean {
    return this.#missingReason() === undefined;
  }

  choices(): readonly WorldChoice[] {
    if (this.violations.length > 0) return [];
    const choices: WorldChoice[] = [];
    if (this.#adsWorld.pendingWriteCount > 0) choices.push({ name: 'read', free: true });
    if (this.#envoy.pendingRequests.length > 0) choices.push({ name: 'deliver', free: true });
    for (const [name, { pendingStep, content }] of this.#envoy.clusters) {
      if (pendingStep === 'resolution' && !this.#stuckClusters.has(name))
        choices.push({ name: `resolve:${name}`, free: true });
      if (pendingStep !== 'nothing' && content.endsWith(limitedMark))
        choices.push({ name: `expire:${name}`, free: true });
    }
    // A client without identification is disconnected; that is not explored here.
    if (this.#clock.nextDueMs() !== undefined && this.#adsWorld.state().startsWith('streaming'))
      choices.push({ name: 'tick', free: true });
    if (this.#changes > 0)
      for (const kind of this.#options.kinds) choices.push({ name: `change:${kind}`, free: false });
    if (this.#faults > 0) choices.push(...this.#faultChoices());
    return choices;
  }

  #faultChoices(): WorldChoice[] {
    const { faultKinds = ['reject', 'reset', 'stuck'] } = this.#options;
    const possible: WorldChoice[] = [];
    if (faultKinds.includes('reject') && this.#envoy.canReject(this.#adsWorld.next))
      possible.push({ name: 'reject', free: false });
    for (const kind of ['reset', 'restart'] as const) {
      if (faultKinds.includes(kind)) possible.push({ name: kind, free: false });
    }
    for (const [name, { pendingStep, isUsable }] of this.#envoy.clusters) {
      // A cluster that never resolves is not a violation after an update or a reconnect: a resolver gives up eventually.
      const isEnding = (isUsable || this.#wasReset) && this.#source.usability.get(name)?.usableAfter === 'warming';
      const isStuck = pendingStep === 'resolution' && !this.#stuckClusters.has(name) && !isEnding;
      if (faultKinds.includes('stuck') && isStuck) possible.push({ name: `stuck:${name}`, free: false });
    }
    return possible;
  }

  apply(choice: string): void {
    this.retrace(choice);
    this.#checkInvariants();
  }

  /** Like {@link apply}, on a path that was already checked. */
  retrace(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    if (['reject', 'reset', 'restart', 'stuck'].includes(kind)) this.#faults--;
    if (kind === 'read') this.#envoy.receive(this.#adsWorld.read()!);
    else if (kind === 'reject') this.#envoy.reject(this.#adsWorld.read()!);
    else if (kind === 'deliver') this.#envoy.pendingRequests.shift()!.send(this.#adsWorld);
    else if (kind === 'resolve' || kind === 'expire') this.#envoy.becomeUsable(subject);
    else if (kind === 'stuck') this.#stuckClusters.add(subject);
    else if (kind === 'tick') this.#clock.fireNext();
    else if (kind === 'reset') this.#reset();
    else if (kind === 'restart') this.#restart();
    else this.#changeConfig(subject as RolloutChange);
    for (const name of this.#adsWorld.abandonedClusters) this.#abandonedClusters.add(name);
    // A resolver gives up eventually, so an update of a DNS cluster ends.
    for (const name of this.#stuckClusters) {
      const isUsableAfterWarming = this.#source.usability.get(name)?.usableAfter === 'warming';
      if (isUsableAfterWarming && this.#envoy.clusters.get(name)?.isUsable === true) this.#stuckClusters.delete(name);
    }
    this.#noteAwaited();
  }

  key(): string {
    const { watches, rollout, heldVersions } = this.#adsWorld;
    const sentKeys = [clusterType, endpointType, routeType].map((type) => this.#adsWorld.sentOf(type));
    const key = JSON.stringify([
      ...[
        this.#changes,
        this.#faults,
        this.#target,
        [...this.#envoy.clusters],
        [...this.#envoy.assignments],
        this.#envoy.route,
      ],
      ...[[...this.#envoy.withoutEndpoints], [...this.#envoy.endpoints]],
      ...[
        this.#envoy.isPaused,
        this.#envoy.pendingNonces,
        this.#envoy.pendingRequests.length,
        this.#envoy.pendingRequests.map(({ typeUrl }) => typeUrl),
      ],
      ...[
        [...this.#abandonedClusters],
        [...this.#stuckClusters],
        [...this.#envoy.rejectedNames],
        watches,
        rollout,
        heldVersions,
        sentKeys,
        this.#adsWorld.network,
      ],
      ...[
        this.#clock.pendingDelays(),
        this.#agesOf(this.#envoy.lastNamed),
        this.#agesOf(this.#awaitedSince),
        this.#adsWorld.state(),
        this.#adsWorld.awaitsClusters,
      ],
    ]);
    const nonces = [...new Set([...key.matchAll(/\/\d+-(\d+)/g)].map(([, number]) => Number(number)))];
    const ranks = nonces.sort((a, b) => a - b);
    return key.replaceAll(/\/(\d+)-(\d+)/g, (_, stream, number) => `/${stream}-${ranks.indexOf(Number(number))}`);
  }

  #agesOf(times: ReadonlyMap<string, number>): [string, number][] {
    return [...times].map(([name, at]) => [name, Math.min(this.#clock.now() - at, 2 * defaultRemovalDelayMs)]);
  }

  save(): () => void {
    throw new Error('this world is replayed');
  }

  // ---- the control plane

  #setRoute(cluster: string): void {
    this.#source.setNaming(routeType, 'r', cluster);
    this.#namedClusters.set(`r=${this.#source.version}`, cluster);
    this.#target = cluster;
  }

  #changeConfig(kind: RolloutChange): void {
    this.#changes--;
    const previousCluster = this.#target;
    if (kind === 'update' || kind === 'secret') {
      this.#source.set(clusterType, previousCluster);
      if (kind === 'secret') this.#fetchSecret(previousCluster);
      this.#adsWorld.push(clusterType, endpointType);
      return;
    }
    if (kind === 'endpoints') {
      this.#source.set(endpointType, previousCluster);
      this.#adsWorld.push(endpointType);
      return;
    }
    if (kind === 'flap') {
      this.#flapCluster(previousCluster);
      return;
    }
    const name = `c${++this.#createdClusters}`;
    const after = kind === 'dns' ? 'warming' : 'assignment';
    this.#source.usability.set(name, { usableAfter: after, assignment: name, secrets: new Set() });
    this.#source.set(clusterType, name);
    if (kind !== 'dns') this.#source.set(endpointType, name);
    this.#setRoute(name);
    if (kind === 'replace') this.#removeCluster(previousCluster);
    this.#adsWorld.push(clusterType, endpointType, routeType);
  }

  #flapCluster(previousCluster: string): void {
    const name = previousCluster === 'c0' ? 'flap' : 'c0';
    for (const typeUrl of [clusterType, endpointType]) {
      this.#flappingResources.set(
        `${typeUrl} ${previousCluster}`,
        this.#source.types.get(typeUrl)!.get(previousCluster)!,
      );
      const flappingResource = this.#flappingResources.get(`${typeUrl} ${name}`);
      if (flappingResource === undefined) this.#source.set(typeUrl, name);
      else this.#source.restore(typeUrl, flappingResource);
    }
    this.#setRoute(name);
    this.#removeCluster(previousCluster);
    this.#adsWorld.push(clusterType, endpointType, routeType);
  }

  #removeCluster(cluster: string): void {
    this.#source.remove(clusterType, cluster);
    // As in the generators: an unknown name has no endpoints.
    this.#source.set(endpointType, cluster);
    this.#source.emptyAssignments.add(`${cluster}=${this.#source.version}`);
  }

  #fetchSecret(name: string): void {
    const content = `${name}=${this.#source.version}`;
    this.#source.usability.set(content, { usableAfter: 'assignment', assignment: name, secrets: new Set([content]) });
  }

  #connect(): AdsWorld {
    AdsWorld.instances.length = 0;
    const { isDelta, rules } = this.#options;
    return new AdsWorld({
      ...{
        isDelta,
        source: this.#source,
        clock: this.#clock,
        hasMakeBeforeBreak: true,
        recordsRoutine: false,
        isRecorded: false,
      },
      departedClusters: this.#departedClusters,
      ...(rules !== undefined && { rolloutRules: rules }),
    });
  }

  // ---- faults

  #restart(): void {
    this.#adsWorld.call.emit('cancelled');
    this.#departedClusters = new DepartedClusters(45_000);
    this.#reset();
  }

  #reset(): void {
    this.#wasReset = true;
    this.#adsWorld.call.emit('cancelled');
    // A resolution ends when the resolver responds or gives up; a secret may never arrive.
    for (const name of this.#stuckClusters)
      if (this.#source.usability.get(name)?.usableAfter === 'warming') this.#stuckClusters.delete(name);
    this.#envoy.disconnect();
    this.#adsWorld = this.#connect();
    this.#envoy.subscribe(true);
  }

  // ---- invariants

  #fail(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail });
  }

  #checkInvariants(): void {
    this.#judgeRoute();
    this.#judgeWaits();
    if (this.#isStarted && !this.choices().some(({ free }) => free)) this.#judgeRest();
  }

  #judgeRoute(): void {
    const cluster = this.#envoy.routedCluster;
    if (cluster === undefined) return;
    if (this.#abandonedClusters.has(cluster) || this.#abandonedClusters.has('*')) return;
    if (this.#envoy.withoutEndpoints.has(cluster))
      this.#fail('no active route leads to a cluster without endpoints', cluster);
    if (this.#envoy.clusters.get(cluster)?.isUsable) return;
    this.#fail('no active route leads to an unusable cluster', `${this.#envoy.route} leads to ${cluster}`);
  }

  get #awaitedClusters(): ReadonlySet<string> {
    return new Set(this.#adsWorld.rollout.held.flatMap(({ clusters }) => clusters));
  }

  #noteAwaited(): void {
    const awaitedClusters = this.#awaitedClusters;
    for (const name of this.#awaitedSince.keys()) if (!awaitedClusters.has(name)) this.#awaitedSince.delete(name);
    for (const name of awaitedClusters)
      if (!this.#awaitedSince.has(name)) this.#awaitedSince.set(name, this.#clock.now());
  }

  #judgeWaits(): void {
    const awaitedClusters = this.#awaitedClusters;
    for (const name of awaitedClusters) {
      const ms = this.#clock.now() - this.#awaitedSince.get(name)!;
      if (ms > defaultMakeBeforeBreakMs) this.#fail('no client waits beyond the limit', `${ms} ms for ${name}`);
    }
    const isQuiet =
      this.#isStarted && this.#adsWorld.pendingWriteCount === 0 && this.#envoy.pendingRequests.length === 0;
    // The control plane may not know whether a client used an unconfigured cluster on an earlier stream; such a cluster is removed later.
    const isResponded = (name: string): boolean =>
      this.#source.contentsOf(clusterType).has(name) ||
      !(this.#envoy.isPaused || (this.#wasReset && !this.#options.isDelta));
    const incompleteCluster = [...this.#envoy.clusters].find(
      ([name, { pendingStep }]) => pendingStep === 'assignment' && isResponded(name),
    );
    if (isQuiet && incompleteCluster !== undefined)
      this.#fail('endpoints of a warming cluster are sent at once', incompleteCluster[0]);
    if (!isQuiet || awaitedClusters.size === 0 || this.#envoy.warmingNonce !== undefined) return;
    const waitsInVain = [...awaitedClusters].find((name) => this.#envoy.clusters.get(name)?.isUsable);
    if (waitsInVain !== undefined) this.#fail('no resource waits for a usable cluster', waitsInVain);
  }

  #judgeRest(): void {
    if (this.#envoy.warmingNonce !== undefined)
      this.#fail('clusters are acknowledged in the end', this.#envoy.warmingNonce.nonce);
    else if (this.#envoy.isPaused) this.#fail('clusters are acknowledged in the end', 'none are requested');
    const lack = this.#missingReason();
    if (lack !== undefined) this.#fail('the end state is the newest', lack);
  }

  /** Resources of the newest state that the client lacks, except those that it rejected. */
  #missingReason(): string | undefined {
    const configuredClusters = this.#source.contentsOf(clusterType);
    for (const [name, content] of configuredClusters) {
      const envoyContent = this.#envoy.clusters.get(name)?.content.replace(limitedMark, '');
      if (!this.#envoy.rejectedNames.has(name) && envoyContent !== content) return `no ${content}`;
    }
    for (const name of this.#envoy.clusters.keys()) {
      const isRetained = this.#adsWorld.rollout.retained.some(
        (retainedCluster) => retainedCluster.name === name && retainedCluster.state !== 'removable',
      );
      if (!configuredClusters.has(name) && !isRetained) return `${name} is left`;
      const isNamed = this.#envoy.routedCluster === name;
      if (!configuredClusters.has(name) && !isNamed && this.#envoy.rejectedNames.size === 0)
        return `${name} is kept for ever`;
    }
    const route = this.#source.contentsOf(routeType).get('r')!;
    return this.#envoy.route === route || this.#envoy.rejectedNames.has(route)
      ? undefined
      : `${this.#envoy.route} instead of ${route}`;
  }
}
