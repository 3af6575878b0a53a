/**
 * Make before break as the explorer sees it: the real stream with its chart, and a model of Envoy that warms clusters and acknowledges
 * CDS when none warms any more (spec/make-before-break.md §1). Requests and responses may be late, in both directions.
 */
import { clusterType, endpointType, routeType } from '../../machines/discovery/ads/ads-types.ts';
import type { RolloutRules } from '../../machines/discovery/ads/rollout-rules.ts';
import type { Choice, Violation, World } from '../../src/debugger/explore/world.ts';
import { defaultMakeBeforeBreakMs, defaultRemovalDelayMs } from '../../src/discovery/ads/ads-limits.ts';
import { DepartedClusters } from '../../src/discovery/ads/responses/departed-clusters.ts';
import { AdsWorld, type Seen } from './ads-world.ts';
import { limitedMark, ScriptedSource } from './scripted-source.ts';
import { VirtualClock } from './virtual-clock.ts';

/**
 * What changes: the route moves to a new cluster (of endpoints, or of a DNS name) and the old one goes, or only a cluster (which may
 * fetch a new secret), or only its endpoints change.
 */
export type RolloutChange = 'replace' | 'add' | 'dns' | 'update' | 'secret' | 'endpoints';

/**
 * Envoy rejects a response, or its stream is reset, perhaps because the control plane restarts and remembers nothing; or a cluster never
 * becomes usable.
 */
export type RolloutFault = 'reject' | 'reset' | 'restart' | 'stuck';

export interface RolloutWorldOptions {
  readonly delta: boolean;
  readonly changes: number;
  readonly faults: number;
  readonly kinds: readonly RolloutChange[];
  /** Faults that there may be; all but `restart` unless said. */
  readonly faultKinds?: readonly RolloutFault[];
  readonly rules?: Partial<RolloutRules>;
  /** What has happened before the exploration. */
  readonly start?: readonly string[];
}

interface Cluster {
  readonly content: string;
  /** What it waits for before it is used as it is now. */
  readonly awaits: 'assignment' | 'resolution' | 'nothing';
  /** It is used, perhaps as it was before. */
  readonly isUsable: boolean;
}

type Request = { readonly typeUrl: string; readonly send: (world: AdsWorld) => void };

export class RolloutWorld implements World {
  readonly violations: Violation[] = [];
  readonly ending = false;
  readonly #options: RolloutWorldOptions;
  readonly #source = new ScriptedSource();
  readonly #clock = new VirtualClock();
  #departed = new DepartedClusters(45_000);
  /** Contents of assignments that are empty. */
  readonly #empty = new Set<string>();
  /** Clusters that a route's content names. */
  readonly #named = new Map<string, string>();
  #ads: AdsWorld;
  #isStarted = false;
  /** Of this stream no clusters were asked for, because clusters warm. */
  #isPaused = false;
  #changes = 0;
  #faults = 0;
  #made = 0;
  #responses = 0;
  #target = 'c0';
  // ---- Envoy
  #clusters = new Map<string, Cluster>();
  #assignments = new Set<string>();
  /** Contents of assignments. */
  readonly #endpoints = new Map<string, string>();
  readonly #withoutEndpoints = new Set<string>();
  #route: string | undefined;
  #warmingNonce: Seen | undefined;
  #outbox: Request[] = [];
  /** When the route last named a cluster. */
  readonly #lastNamed = new Map<string, number>();
  readonly #awaitedSince = new Map<string, number>();
  /** Clusters that the server has given up on any stream. */
  readonly #abandoned = new Set<string>();
  readonly #stuck = new Set<string>();
  readonly #rejected = new Set<string>();

  constructor(options: RolloutWorldOptions) {
    this.#options = options;
    this.#source.set(clusterType, 'c0');
    this.#source.set(endpointType, 'c0');
    this.#setRoute('c0');
    this.#ads = this.#connect();
    // Envoy asks for listeners and routes when all clusters are warm.
    this.#subscribe(false, [clusterType]);
    this.#settle();
    this.#subscribe(false, [routeType]);
    this.#settle();
    this.#isStarted = true;
    for (const choice of options.start ?? []) this.apply(choice);
    this.#changes = options.changes;
    this.#faults = options.faults;
  }

  #settle(): void {
    const isExchange = ({ name }: Choice): boolean => name === 'read' || name === 'deliver';
    for (let next = this.choices().find(isExchange); next !== undefined; next = this.choices().find(isExchange)) {
      this.apply(next.name);
    }
  }

  get spawned(): number {
    return this.#responses;
  }

  get reached(): boolean {
    return this.#lack() === undefined;
  }

  choices(): readonly Choice[] {
    if (this.violations.length > 0) return [];
    const choices: Choice[] = [];
    if (this.#ads.waiting > 0) choices.push({ name: 'read', free: true });
    if (this.#outbox.length > 0) choices.push({ name: 'deliver', free: true });
    for (const [name, { awaits, content }] of this.#clusters) {
      if (awaits === 'resolution' && !this.#stuck.has(name)) choices.push({ name: `resolve:${name}`, free: true });
      if (awaits !== 'nothing' && content.endsWith(limitedMark)) choices.push({ name: `expire:${name}`, free: true });
    }
    // A client that does not introduce itself is let go, and is not what is looked at here.
    if (this.#clock.soonest() !== undefined && this.#ads.state().startsWith('streaming'))
      choices.push({ name: 'tick', free: true });
    if (this.#changes > 0)
      for (const kind of this.#options.kinds) choices.push({ name: `change:${kind}`, free: false });
    if (this.#faults > 0) choices.push(...this.#faultChoices());
    return choices;
  }

  #faultChoices(): Choice[] {
    const { faultKinds = ['reject', 'reset', 'stuck'] } = this.#options;
    const possible: Choice[] = [];
    if (faultKinds.includes('reject') && this.#canReject()) possible.push({ name: 'reject', free: false });
    for (const kind of ['reset', 'restart'] as const) {
      if (faultKinds.includes(kind)) possible.push({ name: kind, free: false });
    }
    for (const [name, { awaits }] of this.#clusters) {
      const isStuck = awaits === 'resolution' && !this.#stuck.has(name);
      if (faultKinds.includes('stuck') && isStuck) possible.push({ name: `stuck:${name}`, free: false });
    }
    return possible;
  }

  /** Envoy rejects clusters that are new to it, and routes. */
  #canReject(): boolean {
    const next = this.#ads.next;
    if (next === undefined) return false;
    const isNew = [...next.resources.keys()].some((name) => !this.#clusters.has(name));
    return next.typeUrl === clusterType ? isNew : next.typeUrl === routeType;
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    if (['reject', 'reset', 'restart', 'stuck'].includes(kind)) this.#faults--;
    if (kind === 'read') this.#take(this.#ads.read()!);
    else if (kind === 'reject') this.#reject(this.#ads.read()!);
    else if (kind === 'deliver') this.#outbox.shift()!.send(this.#ads);
    else if (kind === 'resolve' || kind === 'expire') this.#becomeUsable(subject);
    else if (kind === 'stuck') this.#stuck.add(subject);
    else if (kind === 'tick') this.#clock.fireNext();
    else if (kind === 'reset') this.#reset();
    else if (kind === 'restart') this.#restart();
    else this.#change(subject as RolloutChange);
    this.#judge();
  }

  key(): string {
    const { watches, rollout, held } = this.#ads;
    const sent = [clusterType, endpointType, routeType].map((type) => this.#ads.sentOf(type));
    const key = JSON.stringify([
      ...[this.#changes, this.#faults, this.#target, [...this.#clusters], [...this.#assignments], this.#route],
      ...[[...this.#withoutEndpoints], [...this.#endpoints]],
      ...[this.#isPaused, this.#warmingNonce?.nonce, this.#outbox.length, this.#outbox.map(({ typeUrl }) => typeUrl)],
      ...[[...this.#abandoned], [...this.#stuck], [...this.#rejected], watches, rollout, held, sent, this.#ads.network],
      ...[
        this.#clock.pending(),
        this.#agesOf(this.#lastNamed),
        this.#agesOf(this.#awaitedSince),
        this.#ads.state(),
        this.#ads.awaitsClusters,
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
    this.#named.set(`r=${this.#source.version}`, cluster);
    this.#target = cluster;
  }

  #change(kind: RolloutChange): void {
    this.#changes--;
    const before = this.#target;
    if (kind === 'update' || kind === 'secret') {
      this.#source.set(clusterType, before);
      if (kind === 'secret') this.#fetchSecret(before);
      this.#ads.push(clusterType, endpointType);
      return;
    }
    if (kind === 'endpoints') {
      this.#source.set(endpointType, before);
      this.#ads.push(endpointType);
      return;
    }
    const name = `c${++this.#made}`;
    const after = kind === 'dns' ? 'warming' : 'assignment';
    this.#source.usability.set(name, { after, assignment: name, secrets: new Set() });
    this.#source.set(clusterType, name);
    if (kind !== 'dns') this.#source.set(endpointType, name);
    this.#setRoute(name);
    if (kind === 'replace') {
      this.#source.remove(clusterType, before);
      // As generators have it: of a name that means nothing there are no endpoints.
      this.#source.set(endpointType, before);
      this.#empty.add(`${before}=${this.#source.version}`);
    }
    this.#ads.push(clusterType, endpointType, routeType);
  }

  #fetchSecret(name: string): void {
    const content = `${name}=${this.#source.version}`;
    this.#source.usability.set(content, { after: 'assignment', assignment: name, secrets: new Set([content]) });
  }

  #connect(): AdsWorld {
    AdsWorld.made.length = 0;
    const { delta, rules } = this.#options;
    return new AdsWorld({
      ...{ delta, source: this.#source, clock: this.#clock, makesBeforeBreak: true, tellsRoutine: false },
      departed: this.#departed,
      ...(rules !== undefined && { rolloutRules: rules }),
    });
  }

  // ---- Envoy

  #subscribe(isReturning: boolean, types: readonly string[] = [clusterType, endpointType, routeType]): void {
    const isWarming = [...this.#clusters.values()].some(({ awaits }) => awaits !== 'nothing');
    const { delta } = this.#options;
    // The first request for clusters acknowledges the response that came without one.
    const unrequested = this.#warmingNonce?.nonce ?? '';
    const has = (typeUrl: string): Record<string, string> => {
      const contents = typeUrl === clusterType ? [...this.#clusters].map(([, { content }]) => content) : [];
      const endpoints = [...this.#endpoints.values()];
      const others = typeUrl === endpointType ? endpoints : contents;
      const all = typeUrl === routeType && this.#route !== undefined ? [this.#route] : others;
      return Object.fromEntries(all.map((content) => content.split('=') as [string, string]));
    };
    const request = (typeUrl: string, names: string[]): void => {
      if (!types.includes(typeUrl)) return;
      this.#say(typeUrl, (world) =>
        delta
          ? world.delta({
              typeUrl,
              resourceNamesSubscribe: names,
              initialResourceVersions: isReturning ? has(typeUrl) : {},
              responseNonce: typeUrl === clusterType ? unrequested : '',
            })
          : world.sotw({
              ...{ typeUrl, resourceNames: names, versionInfo: isReturning ? 'v' : '' },
              responseNonce: typeUrl === clusterType ? unrequested : '',
            }),
      );
    };
    if (!isWarming) request(clusterType, []);
    if (types.includes(clusterType)) this.#isPaused = isWarming;
    const endpoints = [...this.#clusters.keys()].filter((name) => this.#isOfEndpoints(name));
    if (endpoints.length > 0) request(endpointType, endpoints);
    request(routeType, ['r']);
    this.#warmingNonce = undefined;
  }

  #isOfEndpoints(name: string): boolean {
    return this.#source.usability.get(name)?.after !== 'warming';
  }

  #say(typeUrl: string, send: Request['send']): void {
    this.#outbox.push({ typeUrl, send });
  }

  #acknowledge({ typeUrl, nonce: responseNonce }: Seen, message?: string): void {
    const errorDetail = message === undefined ? {} : { errorDetail: { code: 3, message } };
    const names = typeUrl === clusterType ? [] : typeUrl === routeType ? ['r'] : [...this.#assignments].sort();
    this.#say(typeUrl, (world) =>
      this.#options.delta
        ? world.delta({ typeUrl, responseNonce, ...errorDetail })
        : world.sotw({ typeUrl, responseNonce, resourceNames: names, ...errorDetail }),
    );
  }

  #take(seen: Seen): void {
    this.#responses++;
    if (seen.typeUrl === clusterType) this.#takeClusters(seen);
    else if (seen.typeUrl === endpointType) this.#takeEndpoints(seen);
    else if (seen.typeUrl === routeType) this.#takeRoutes(seen);
  }

  #takeClusters(seen: Seen, rejected: ReadonlySet<string> = new Set()): void {
    const gone = this.#options.delta
      ? seen.removed
      : [...this.#clusters.keys()].filter((name) => !seen.resources.has(name));
    for (const name of gone) this.#removeCluster(name);
    const wanted: string[] = [];
    for (const [name, content] of seen.resources) {
      if (rejected.has(name) || this.#clusters.get(name)?.content === content) continue;
      // Envoy uses the cluster of before until the new one is warm, which waits for its endpoints again.
      const isUsable = this.#clusters.get(name)?.isUsable === true;
      const isOfSecret = this.#source.usability.has(content.replace(limitedMark, ''));
      const awaits = this.#isOfEndpoints(name) && !isOfSecret ? 'assignment' : 'resolution';
      this.#clusters.set(name, { content, awaits, isUsable });
      if (this.#isOfEndpoints(name) && !this.#assignments.has(name)) wanted.push(name);
    }
    this.#warmingNonce = seen;
    if (wanted.length > 0) this.#askEndpoints(wanted);
    this.#acknowledgeWhenWarm();
  }

  #askEndpoints(names: readonly string[]): void {
    for (const name of names) this.#assignments.add(name);
    const all = [...this.#assignments].sort();
    this.#say(endpointType, (world) =>
      this.#options.delta
        ? world.delta({ typeUrl: endpointType, resourceNamesSubscribe: [...names] })
        : world.sotw({
            ...{ typeUrl: endpointType, resourceNames: all },
            responseNonce: world.watch(endpointType)?.nonceSent ?? '',
          }),
    );
  }

  #removeCluster(name: string): void {
    if (!this.#clusters.has(name)) return;
    const isNamed = this.#route !== undefined && this.#named.get(this.#route) === name;
    const since = this.#clock.now() - (this.#lastNamed.get(name) ?? Number.NEGATIVE_INFINITY);
    if (isNamed) this.#fail('nothing in use is removed', `${name}, which the active route names`);
    else if (since < defaultRemovalDelayMs) this.#fail('nothing in use is removed', `${name}, ${since} ms after`);
    this.#clusters.delete(name);
    this.#assignments.delete(name);
    this.#endpoints.delete(name);
    this.#withoutEndpoints.delete(name);
    if (this.#options.delta && this.#isOfEndpoints(name)) {
      this.#say(endpointType, (world) => world.delta({ typeUrl: endpointType, resourceNamesUnsubscribe: [name] }));
    }
  }

  #takeEndpoints(seen: Seen): void {
    for (const [name, content] of seen.resources) {
      this.#endpoints.set(name, content);
      if (this.#empty.has(content)) this.#withoutEndpoints.add(name);
      else this.#withoutEndpoints.delete(name);
      if (this.#clusters.get(name)?.awaits === 'assignment') this.#becomeUsable(name);
    }
    this.#acknowledge(seen);
  }

  #becomeUsable(name: string): void {
    const cluster = this.#clusters.get(name);
    if (cluster !== undefined) this.#clusters.set(name, { ...cluster, awaits: 'nothing', isUsable: true });
    this.#acknowledgeWhenWarm();
  }

  /** In state of the world the newest response alone is acknowledged. */
  #acknowledgeWhenWarm(): void {
    if ([...this.#clusters.values()].some(({ awaits }) => awaits !== 'nothing')) return;
    if (this.#isPaused) {
      this.#subscribe(true, [clusterType]);
      return;
    }
    if (this.#warmingNonce === undefined) return;
    this.#acknowledge(this.#warmingNonce);
    this.#warmingNonce = undefined;
  }

  #takeRoutes(seen: Seen): void {
    const content = seen.resources.get('r');
    if (content !== undefined) {
      const before = this.#route === undefined ? undefined : this.#named.get(this.#route);
      if (before !== undefined) this.#lastNamed.set(before, this.#clock.now());
      this.#route = content;
    }
    this.#acknowledge(seen);
  }

  #reject(seen: Seen): void {
    if (seen.typeUrl !== clusterType) {
      this.#acknowledge(seen, 'no');
      for (const content of seen.resources.values()) this.#rejected.add(content);
      return;
    }
    const [bad = ''] = [...seen.resources.keys()].filter((name) => !this.#clusters.has(name));
    this.#rejected.add(bad);
    this.#takeClusters(seen, new Set([bad]));
    const rejection = this.#outbox.findLastIndex(({ typeUrl }) => typeUrl === clusterType);
    if (rejection >= 0) this.#outbox.splice(rejection, 1);
    this.#warmingNonce = undefined;
    this.#acknowledge(seen, `Error adding/updating cluster(s) ${bad}: malformed`);
  }

  #restart(): void {
    this.#ads.call.emit('cancelled');
    this.#departed = new DepartedClusters(45_000);
    this.#reset();
  }

  #reset(): void {
    this.#ads.call.emit('cancelled');
    this.#outbox = [];
    this.#warmingNonce = undefined;
    this.#ads = this.#connect();
    this.#subscribe(true);
  }

  // ---- what must hold

  #fail(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail });
  }

  #judge(): void {
    for (const name of this.#ads.abandoned) this.#abandoned.add(name);
    this.#judgeRoute();
    this.#judgeWaits();
    if (this.#isStarted && !this.choices().some(({ free }) => free)) this.#judgeRest();
  }

  #judgeRoute(): void {
    const cluster = this.#route === undefined ? undefined : this.#named.get(this.#route);
    if (cluster === undefined) return;
    if (this.#abandoned.has(cluster) || this.#abandoned.has('*')) return;
    if (this.#withoutEndpoints.has(cluster))
      this.#fail('no active route leads to a cluster without endpoints', cluster);
    if (this.#clusters.get(cluster)?.isUsable) return;
    this.#fail('no active route leads to an unusable cluster', `${this.#route} leads to ${cluster}`);
  }

  #judgeWaits(): void {
    const { rollout } = this.#ads;
    const awaited = new Set(rollout.held.flatMap(({ clusters }) => clusters));
    for (const name of this.#awaitedSince.keys()) if (!awaited.has(name)) this.#awaitedSince.delete(name);
    for (const name of awaited) {
      const since = this.#awaitedSince.get(name) ?? this.#clock.now();
      this.#awaitedSince.set(name, since);
      const ms = this.#clock.now() - since;
      if (ms > defaultMakeBeforeBreakMs) this.#fail('no client waits beyond the limit', `${ms} ms for ${name}`);
    }
    const isQuiet = this.#isStarted && this.#ads.waiting === 0 && this.#outbox.length === 0;
    const lacking = [...this.#clusters].find(([, { awaits }]) => awaits === 'assignment');
    if (isQuiet && lacking !== undefined) this.#fail('endpoints of a warming cluster are sent at once', lacking[0]);
    if (!isQuiet || awaited.size === 0 || this.#warmingNonce !== undefined) return;
    const waitsInVain = [...awaited].find((name) => this.#clusters.get(name)?.isUsable);
    if (waitsInVain !== undefined) this.#fail('nothing waits for a usable cluster', waitsInVain);
  }

  #judgeRest(): void {
    if (this.#warmingNonce !== undefined) this.#fail('clusters are acknowledged in the end', this.#warmingNonce.nonce);
    else if (this.#isPaused) this.#fail('clusters are acknowledged in the end', 'none are requested');
    const lack = this.#lack();
    if (lack !== undefined) this.#fail('the end state is the newest', lack);
  }

  /** What the client does not have of the newest state; a client that rejected it need not have it. */
  #lack(): string | undefined {
    const wanted = this.#source.contentsOf(clusterType);
    for (const [name, content] of wanted) {
      const has = this.#clusters.get(name)?.content.replace(limitedMark, '');
      if (!this.#rejected.has(name) && has !== content) return `no ${content}`;
    }
    for (const name of this.#clusters.keys()) {
      const isKept = this.#ads.rollout.retained.some((kept) => kept.name === name && kept.state !== 'removable');
      if (!wanted.has(name) && !isKept) return `${name} is left`;
      const isNamed = this.#route !== undefined && this.#named.get(this.#route) === name;
      if (!wanted.has(name) && !isNamed && this.#rejected.size === 0) return `${name} is kept for ever`;
    }
    const route = this.#source.contentsOf(routeType).get('r')!;
    return this.#route === route || this.#rejected.has(route) ? undefined : `${this.#route} instead of ${route}`;
  }
}
