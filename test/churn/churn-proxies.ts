/** Proxies of each namespace and protocol, their disturbances, and responses that they should not have received. */
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/eventually.ts';
import { encodeNode } from '../sidecars/node.ts';
import { ResourceBatches } from '../sidecars/resource-batches.ts';
import { type ReceivedResponse, Sidecar } from '../sidecars/sidecar.ts';
import type { Kind, XdsProtocol } from '../sidecars/xds-types.ts';
import { edgeNamespace, namespaces, wideNamespace } from './churn-model.ts';
import {
  type ChurnProxy,
  few,
  hasArrived,
  holdingsOf,
  isNamed,
  mayKeep,
  proxyName,
  recordTrouble,
  removedInUse,
  seconds,
} from './churn-proxy.ts';
import { clusterContent, clustersGivenUp, limitedClusters } from './fetch-limits.ts';
import { differences } from './final-checks.ts';
import { namedClusters } from './named-clusters.ts';
import { type DueEffect, lateMs, type Oracle } from './oracle.ts';
import { UnroutedClusters } from './unrouted-clusters.ts';

/** Counters of the complete run. */
export interface ChurnCounts {
  readonly responses: number;
  readonly redundant: number;
  readonly rejected: number;
  readonly departedCount: number;
  readonly stalled: number;
  /** Clusters that were sent again with a fetch timeout. */
  readonly givenUp: number;
  readonly lost: readonly string[];
  /** Responses without new content and without a known cause. */
  readonly unexplained: readonly string[];
  /** New content long after its change. */
  readonly late: readonly string[];
  /** Missing effects of changes, and the number of checked effects. */
  readonly missed: readonly string[];
  readonly checkedCount: number;
  /** Clusters that were removed while a route named them, and routes that preceded their clusters. */
  readonly unordered: readonly string[];
}

/** After a connect, a resumed read or a rejection: time in which the server may still send responses because of it. */
export const settlingMs = 2_500;
/** Drain time of replaced listeners that the agents of these proxies report. */
export const drainMs = 400;
/** Maximum number of fresh proxies at a time. */
const maxFresh = 16;
/** Shares of proxies without a Sidecar object, and of gateways. */
const wideShare = 0.15;
const edgeShare = 0.05;

export class ChurnProxies {
  readonly all: readonly ChurnProxy[];
  readonly #port: number;
  readonly #oracle: Oracle;
  readonly #now: () => number;
  readonly #batches = {
    sotw: new ResourceBatches(false, {}, clusterContent),
    delta: new ResourceBatches(true, {}, clusterContent),
  };
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Number of restarts of the server, and whether one is in progress. */
  #life = 0;
  #isRestarting = false;
  readonly #counts = {
    responses: 0,
    redundant: 0,
    rejected: 0,
    departedCount: 0,
    stalled: 0,
    givenUp: 0,
    lost: [] as string[],
    unexplained: [] as string[],
    late: [] as string[],
    missed: [] as string[],
    unordered: [] as string[],
    checkedCount: 0,
  };

  /**
   * @param oracle determines the proxies that each change affects
   * @param now common clock of changes and their effects
   */
  constructor(port: number, count: number, oracle: Oracle, now: () => number) {
    this.#port = port;
    this.#now = now;
    this.#oracle = oracle;
    const wide = Math.round(count * wideShare);
    const edge = wide + Math.ceil(count * edgeShare);
    const namespaceOf = (number: number): string =>
      number < wide ? wideNamespace : number < edge ? edgeNamespace : namespaces[(number - edge) % namespaces.length]!;
    this.all = Array.from({ length: count }, (_, number) => this.#proxy(number, namespaceOf(number)));
  }

  get counts(): ChurnCounts {
    return this.#counts;
  }

  openAll(): void {
    for (const proxy of this.all) this.#open(proxy);
  }

  /** Whether all proxies are connected and no response arrived during this time. */
  isQuiet(ms: number): boolean {
    return this.all.every(
      ({ sidecar, disturbance, lastResponseMs }) =>
        sidecar.isFull && disturbance === 'none' && this.#now() - lastResponseMs > ms,
    );
  }

  /** Checks that routes to new clusters followed. @param ofAll whether no message is in flight any more */
  checkRoutes(ofAll = false): void {
    for (const { name, unrouted } of this.all) {
      const clusters = unrouted.takeLate(ofAll ? Number.POSITIVE_INFINITY : this.#now() - lateMs);
      if (clusters.length > 0) this.#counts.missed.push(`${name} was not sent routes to ${few(clusters)}`);
    }
  }

  /** Checks that effects of changes arrived at all affected proxies without a later disturbance. */
  checkEffects(ofAll = false): void {
    for (const effect of this.#oracle.takeDue(this.#now(), ofAll)) {
      for (const proxy of this.#affectedBy(effect)) {
        this.#counts.checkedCount++;
        if (hasArrived(proxy, effect)) continue;
        this.#counts.missed.push(`${proxy.name} was not sent ${effect.kind} ${effect.name} within ${seconds(lateMs)}`);
      }
    }
  }

  /** Whether all has arrived that {@link checkEffects} and {@link checkRoutes} have not checked. */
  hasAllEffects(): boolean {
    if (this.all.some(({ unrouted }) => unrouted.size > 0)) return false;
    return this.#oracle.pending.every((effect) => this.#affectedBy(effect).every((proxy) => hasArrived(proxy, effect)));
  }

  /** Proxies without a later disturbance that must be sent the effect. */
  #affectedBy(effect: DueEffect): ChurnProxy[] {
    const { sinceMs, name, effectKind, namespaces: affected } = effect;
    return this.all.filter((proxy) => {
      if (!affected.has(proxy.namespace) || proxy.quietSinceMs > sinceMs) return false;
      if (effectKind === 'removal' && mayKeep(proxy, name)) return false;
      // A cluster that was kept is not sent again when its service returns.
      return !(effectKind === 'arrival' && proxy.sidecar.resources('CDS').has(name) && !hasArrived(proxy, effect));
    });
  }

  /**
   * Runs a restart of the server. Proxies reconnect, and the first responses of the next process must be explained by changes since shortly before
   * the stream ended.
   *
   * @param restart calls its argument between the two processes
   * @throws Error if a proxy does not have everything again in time
   */
  async reconnectDuring(restart: (stopped: () => void) => Promise<unknown>, timeoutMs: number): Promise<void> {
    this.#isRestarting = true;
    await restart(() => void this.#life++);
    const isBack = ({ completeLife }: ChurnProxy): boolean => completeLife === this.#life;
    await eventually('every proxy has everything again', () => this.all.every(isBack), { deadlineMs: timeoutMs });
    this.#isRestarting = false;
  }

  leave(proxy: ChurnProxy, ms: number): void {
    this.#counts.departedCount++;
    proxy.disturbance = 'away';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    proxy.unrouted.clear();
    proxy.sidecar.close();
    this.#after(ms, () => this.#open(proxy));
  }

  stall(proxy: ChurnProxy, ms: number): void {
    this.#counts.stalled++;
    proxy.disturbance = 'stalled';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    proxy.unrouted.clear();
    proxy.sidecar.stall();
    this.#after(ms, () => {
      // A restart of the server ended the stream.
      if (proxy.disturbance !== 'stalled') return;
      proxy.disturbance = 'none';
      proxy.quietSinceMs = this.#now() + settlingMs;
      recordTrouble(proxy, 'it read on', this.#now());
      proxy.sidecar.resume();
    });
  }

  reject(proxy: ChurnProxy): void {
    proxy.sidecar.rejectNext('churn: rejected on purpose');
  }

  /** Returns one proxy per namespace and protocol. */
  samples(): ChurnProxy[] {
    const seen = new Set<string>();
    return this.all.filter(({ namespace, protocol }) => {
      const group = `${namespace} ${protocol}`;
      return !seen.has(group) && seen.add(group);
    });
  }

  /** Connects a new proxy with the same node and compares the resources of both. @returns differences */
  async compareWithFresh(proxy: ChurnProxy, timeoutMs: number): Promise<string[]> {
    const fresh = this.#proxy(proxy.number, proxy.namespace, proxy.protocol);
    const deadline = this.#now() + timeoutMs;
    this.#open(fresh);
    while (!fresh.sidecar.isFull && this.#now() < deadline) await sleep(5);
    const found = fresh.sidecar.isFull
      ? differences(holdingsOf(proxy.sidecar), holdingsOf(fresh.sidecar), (cluster) => mayKeep(proxy, cluster))
      : [`a fresh proxy has not everything after ${timeoutMs} ms`];
    const limited = limitedClusters(fresh.sidecar.resources('CDS'));
    if (limited.length > 0) found.push(`a fresh proxy is sent ${few(limited)} with a time limit`);
    fresh.disturbance = 'away';
    fresh.sidecar.close();
    return found.map((line) => `${proxy.name}: ${line}`);
  }

  /** Compares each of these proxies with a fresh one, some at a time. @returns differences */
  async compareAll(proxies: readonly ChurnProxy[], timeoutMs: number): Promise<string[]> {
    const found: string[] = [];
    for (let from = 0; from < proxies.length; from += maxFresh) {
      const some = proxies.slice(from, from + maxFresh);
      found.push(...(await Promise.all(some.map((proxy) => this.compareWithFresh(proxy, timeoutMs)))).flat());
    }
    return found;
  }

  /**
   * Compares each proxy with a fresh one while changes continue, as soon as it is not disturbed.
   *
   * @param limitMs time in which each update must arrive
   * @returns differences that existed for this time
   */
  async lastingDifferences(limitMs: number, timeoutMs: number): Promise<string[]> {
    const begunMs = this.#now();
    const differing = new Map<ChurnProxy, string[] | undefined>(this.all.map((proxy) => [proxy, undefined]));
    for (;;) {
      for (const [proxy, known] of differing) {
        if (!proxy.sidecar.isFull || proxy.disturbance !== 'none' || this.#now() < proxy.quietSinceMs) continue;
        const found = await this.compareWithFresh(proxy, timeoutMs);
        const lasting = found.filter((line) => known?.includes(line) ?? true);
        if (lasting.length === 0) differing.delete(proxy);
        else differing.set(proxy, lasting);
      }
      if (differing.size === 0) return [];
      if (this.#now() - begunMs > limitMs)
        return [...differing].flatMap(
          ([{ name }, lines]) => lines ?? [`${name} was not settled for ${seconds(limitMs)}`],
        );
      await sleep(500);
    }
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const proxy of this.all) {
      proxy.disturbance = 'away';
      proxy.sidecar.close();
    }
  }

  #proxy(number: number, namespace: string, protocol: XdsProtocol = number % 3 === 0 ? 'sotw' : 'delta'): ChurnProxy {
    const sidecar = new Sidecar({
      port: this.#port,
      protocol,
      node: encodeNode({ number, namespace, type: namespace === edgeNamespace ? 'router' : 'sidecar', drainMs }),
      batches: this.#batches[protocol],
      onResponse: (_, response) => this.#note(proxy, response),
      onFull: () => {
        proxy.quietSinceMs = this.#now() + settlingMs;
        proxy.acceptedMs = this.#now();
        proxy.completeLife = proxy.life;
      },
      onEnd: (_, reason) => this.#onStreamLost(proxy, reason),
    });
    const proxy: ChurnProxy = {
      name: `${proxyName({ number, namespace })} (${protocol})`,
      number,
      namespace,
      protocol,
      sidecar,
      quietSinceMs: Number.POSITIVE_INFINITY,
      disturbance: 'none',
      lastResponseMs: 0,
      clustersAtMs: Number.NEGATIVE_INFINITY,
      clustersToWarm: 0,
      lastNewContentAtMs: new Map(),
      named: new Map(),
      unrouted: new UnroutedClusters(),
      rejecting: new Set(),
      acceptedMs: Number.NEGATIVE_INFINITY,
      lastDisturbance: { event: 'it was created', atMs: this.#now() },
      life: this.#life,
      completeLife: -1,
      returnsSinceMs: undefined,
    };
    return proxy;
  }

  #open(proxy: ChurnProxy): void {
    proxy.disturbance = 'none';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    recordTrouble(proxy, 'it came', this.#now());
    proxy.life = this.#life;
    proxy.sidecar.open();
  }

  #note(proxy: ChurnProxy, response: ReceivedResponse): void {
    const { kind, batch, rejected, isChanged, previousResources } = response;
    // A fetch timeout does not change the configuration of the cluster.
    const givenUp = new Set(
      kind === 'CDS' ? clustersGivenUp(previousResources, proxy.sidecar.resources(kind), response.changedNames) : [],
    );
    const news =
      givenUp.size === 0 ? response.changedNames : response.changedNames.filter((name) => !givenUp.has(name));
    this.#counts.givenUp += givenUp.size;
    const now = this.#now();
    const unordered = [...this.#recordNamedClusters(proxy, response), ...removedInUse(proxy, kind, news)];
    // A gateway has clusters that no route names.
    if (kind === 'CDS' && proxy.namespace !== edgeNamespace && now >= proxy.quietSinceMs)
      this.#noteUnrouted(proxy, news);
    if (kind === 'RDS') for (const clusters of proxy.named.values()) proxy.unrouted.removeRouted(clusters);
    if (rejected) proxy.unrouted.clear();
    proxy.lastResponseMs = now;
    this.#counts.responses++;
    if (!isChanged) this.#counts.redundant++;
    for (const name of news) proxy.lastNewContentAtMs.set(`${kind} ${name}`, now);
    if (kind === 'CDS') {
      proxy.clustersToWarm = now - proxy.clustersAtMs < lateMs ? proxy.clustersToWarm + 1 : 1;
      proxy.clustersAtMs = now;
    }
    const isWarming = kind === 'EDS' && !isChanged && proxy.clustersToWarm > 0 && now - proxy.clustersAtMs < lateMs;
    if (isWarming) proxy.clustersToWarm--;
    if (rejected) {
      this.#counts.rejected++;
      recordTrouble(proxy, 'it rejected a response', this.#now());
      proxy.quietSinceMs = now + settlingMs;
    }
    const isRemoved = (name: string): boolean => kind !== 'RDS' && !proxy.sidecar.resources('CDS').has(name);
    const left = news.filter((name) => !isRemoved(name));
    if (now < proxy.quietSinceMs) {
      // A new process does not know the clusters that the previous one kept.
      if (proxy.returnsSinceMs !== undefined) this.#explain(proxy, kind, left, proxy.returnsSinceMs);
      return;
    }
    proxy.returnsSinceMs = undefined;
    for (const line of unordered) this.#report('unordered', proxy, line);
    if (!isChanged) {
      if (isWarming) return;
      this.#report('unexplained', proxy, `${kind} that it had: ${few([...batch.keys()])}`);
      return;
    }
    // Clusters that were kept because of rejected routes or a reconnect are removed long after the change.
    const isAwaited = this.#oracle.isRemovalDue(proxy.acceptedMs, now);
    this.#explain(proxy, kind, isAwaited ? left : news, now);
  }

  /** @param atMs time until which older changes must have arrived at the proxy */
  #explain(proxy: ChurnProxy, kind: Kind, news: readonly string[], atMs: number): void {
    const { unexplained, late } = this.#oracle.explain(proxy.namespace, kind, news, atMs);
    if (unexplained.length > 0)
      this.#report('unexplained', proxy, `${kind} that no change explains: ${few(unexplained)}`);
    if (late.length > 0) this.#report('late', proxy, `${kind} long after the change: ${few(late)}`);
  }

  /** Records the clusters that routes name. @returns errors */
  #recordNamedClusters(proxy: ChurnProxy, { kind, batch, resources, rejected }: ReceivedResponse): string[] {
    if (kind === 'LDS' || kind === 'RDS') {
      if (rejected) proxy.rejecting.add(kind);
      else if (proxy.rejecting.delete(kind)) proxy.acceptedMs = this.#now();
    }
    if (kind !== 'RDS') return [];
    const named = namedClusters(batch, resources, proxy.protocol === 'delta');
    for (const [name, clusters] of named) proxy.named.set(name, clusters);
    // A gateway's routes may name a removed service.
    if (proxy.namespace === edgeNamespace) return [];
    const has = proxy.sidecar.resources('CDS');
    // These proxies acknowledge clusters before they request endpoints, so routes may precede endpoints.
    const missing = [...named.values()].flatMap((clusters) => [...clusters].filter((cluster) => !has.has(cluster)));
    return missing.length === 0 ? [] : [`routes before the clusters that they name: ${few(missing)}`];
  }

  #noteUnrouted(proxy: ChurnProxy, news: readonly string[]): void {
    const has = proxy.sidecar.resources('CDS');
    for (const name of news) {
      if (!name.startsWith('outbound|')) continue;
      if (!has.has(name)) proxy.unrouted.recordRemoved(name);
      else if (!isNamed(proxy, name)) proxy.unrouted.recordAdded(name, this.#now());
    }
  }

  #report(counter: 'unexplained' | 'late' | 'unordered', proxy: ChurnProxy, sent: string): void {
    const { name, lastDisturbance } = proxy;
    const ago = seconds(this.#now() - lastDisturbance.atMs);
    this.#counts[counter].push(`${name} was sent ${sent}; ${lastDisturbance.event} ${ago} before`);
  }

  #onStreamLost(proxy: ChurnProxy, reason: string): void {
    if (proxy.disturbance === 'away') return;
    if (this.#isRestarting || proxy.life < this.#life) proxy.returnsSinceMs ??= this.#now();
    else this.#counts.lost.push(`${proxy.name} lost its stream: ${reason}`);
    proxy.disturbance = 'away';
    proxy.unrouted.clear();
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    this.#after(200, () => this.#open(proxy));
  }

  #after(ms: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, ms);
    this.#timers.add(timer);
  }
}
