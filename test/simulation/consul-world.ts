/**
 * One datacenter of Consul for the explorer: the real charts `consul` and `consul-catalog` with scripted effects, and a server that has only a number
 * of services. The choices of the explorer: a service is added or removed (`add`, `remove`, `remove-all`), the server loses its data (`lose`), an ACL
 * denies access (`deny`, `grant`), the server exits and starts (`kill`, `start`), credentials change (`token`), an operator confirms a response
 * (`accept`), a request returns (`answer:reading`, `fail:reading`; `refuse:reading` is a 429), a blocking query returns (`wake`, `break`), and the
 * next deadline (`tick:consul-catalog-1.retryDelay`).
 *
 * Bounds: the numbers of changes and of faults. Every blocking query returns eventually.
 */
import type { AnyActorRef } from 'xstate';
import type { CatalogReading } from '../../machines/discovery/consul/catalog-change.ts';
import { consulMachine } from '../../machines/discovery/consul/consul.machine.ts';
import {
  type ConsulCatalogInput,
  type ConsulWatchOrder,
  consulCatalogMachine,
  type ReadOrder,
  type ReadOutcome,
  type SurveyOutcome,
} from '../../machines/discovery/consul/consul-catalog.machine.ts';
import type { IndexRegressed, QueryFailed } from '../../machines/discovery/consul/consul-protocol.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

export interface ConsulBounds {
  readonly services: number;
  readonly changes: number;
  readonly faults: number;
}

type RequestName = 'surveying' | 'reading' | 'verifying';

interface State {
  readonly changes: number;
  readonly faults: number;
  readonly isUp: boolean;
  readonly isDenied: boolean;
  /** Number of services on the server. */
  readonly services: number;
  /** Counts changes of the catalog and of the server's history. */
  readonly version: number;
  readonly history: number;
  /** Last read catalog, and number of served services; undefined before the first. */
  readonly lastReading: CatalogReading | undefined;
  readonly servedCount: number | undefined;
  /** Consecutive consistent reads with unrestricted access, at most {@link minRepeated}. */
  readonly repeatCount: number;
  /** Requests since the last delay. */
  readonly burst: number;
  readonly requests: Readonly<Partial<Record<RequestName, AnyActorRef>>>;
  /** The running watch, with its last returned version. */
  readonly watch: { readonly actor: AnyActorRef; readonly version: number; readonly history: number } | undefined;
  readonly violations: readonly InvariantViolation[];
}

const changes = new Set(['add', 'remove', 'remove-all', 'token', 'accept']);
const faults = new Set(['lose', 'deny', 'kill', 'refuse']);
/** Five minutes, one read every ten seconds. */
const minRepeated = 30;
/** A survey and a read, twice, and as many again after a change or fault. */
const maxBurst = 8;
const isPause = /\.(retryDelay|verifyInterval)$/;

export class ConsulWorld implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #system = new SymbolicSystem();
  readonly #root: AnyActorRef;
  #credentials: AnyActorRef | undefined;
  #state: State;

  constructor({ services, changes, faults }: ConsulBounds, catalog = consulCatalogMachine) {
    this.#state = {
      ...{ changes, faults, isUp: true, isDenied: false, services, version: 1, history: 1 },
      ...{ lastReading: undefined, servedCount: undefined, repeatCount: 0, burst: 0, requests: {} },
      ...{ watch: undefined, violations: [] },
    };
    this.#root = this.#system.start(this.#machine(catalog), { id: 'consul', input: undefined });
    this.#system.elapse();
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  /** Whether the services on the server are served; while access is denied, nothing can be known. */
  get isGoalReached(): boolean {
    const { isUp, isDenied, services, servedCount } = this.#state;
    return isUp && !isDenied && services === servedCount;
  }

  choices(): readonly WorldChoice[] {
    const { isUp, isDenied, services, watch, requests, version, history, violations } = this.#state;
    if (violations.length > 0) return [];
    const names: [name: string, isPossible: boolean][] = [
      ['add', isUp],
      ['remove', isUp && services > 1],
      ['remove-all', isUp && services > 0],
      ['lose', isUp && services > 0],
      ['deny', !isDenied],
      ['grant', isDenied],
      ['kill', isUp],
      ['start', !isUp],
      ['token', true],
      ['accept', true],
      ['wake', isUp && watch !== undefined && (watch.version < version || watch.history < history)],
      ['break', !isUp && watch !== undefined],
      ...Object.keys(requests).flatMap((name): [string, boolean][] => [
        [`answer:${name}`, isUp],
        [`fail:${name}`, !isUp],
        [`refuse:${name}`, isUp],
      ]),
      ...this.#system.zone.firableTimers().map((timer): [string, boolean] => [`tick:${timer}`, true]),
    ];
    // A pending response may be late, but not forever.
    const isLate = (name: string): boolean => name.endsWith('.readLimit') && isUp;
    return names.flatMap(([name, isPossible]) => {
      const kind = name.split(':')[0]!;
      const isLimited = changes.has(kind) || faults.has(kind);
      const isBudgetLeft = (changes.has(kind) ? this.#state.changes : this.#state.faults) > 0;
      if (!isPossible || (isLimited && !isBudgetLeft)) return [];
      return [{ name, free: !isLimited, ...(isLate(name) && { fair: false }) }];
    });
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    if (changes.has(kind)) this.#set({ changes: this.#state.changes - 1 });
    if (faults.has(kind)) this.#set({ faults: this.#state.faults - 1 });
    const { services, version, history } = this.#state;
    switch (kind) {
      case 'add':
        this.#set({ services: services + 1, version: version + 1 });
        break;
      case 'remove':
        this.#set({ services: services - 1, version: version + 1 });
        break;
      case 'remove-all':
        this.#set({ services: 0, version: version + 1 });
        break;
      case 'lose':
        this.#set({ services: 0, version: 1, history: history + 1 });
        break;
      case 'deny':
      case 'grant':
        this.#set({ isDenied: kind === 'deny', version: version + 1 });
        break;
      case 'kill':
      case 'start':
        this.#set({ isUp: kind === 'start' });
        break;
      case 'token':
        reportEvent(this.#credentials!, { type: 'consul-credentials.changed' });
        break;
      case 'accept':
        this.#root.send({ type: 'catalog.accept', datacenter: '' });
        break;
      case 'wake':
        this.#respondToWatch();
        break;
      case 'break':
        this.#endWatch({ type: 'query.failed', failure: { reason: 'reset', status: 0 }, draw: 0.5 });
        break;
      case 'answer':
        this.#respond(subject as RequestName);
        break;
      case 'fail':
      case 'refuse':
        this.#fail(subject as RequestName, kind === 'fail' ? 0 : 429);
        break;
      default:
        if (isPause.test(subject)) this.#set({ burst: 0 });
        this.#system.fire(subject);
    }
    this.#system.elapse();
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  key(): string {
    const { requests, watch, ...state } = this.#state;
    const keyParts = [state, Object.keys(requests).toSorted(), watch && [watch.version, watch.history]];
    let key = JSON.stringify(keyParts) + this.#system.zone.orderKey();
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
      if (value !== undefined) key += `${actor.id} ${JSON.stringify([value, context])}\n`;
    }
    return key;
  }

  save(): () => void {
    const state = this.#state;
    const credentials = this.#credentials;
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      this.#credentials = credentials;
      restore();
    };
  }

  // ---- the server

  get #currentReading(): CatalogReading {
    const { isDenied, services } = this.#state;
    const listedServices = isDenied ? 0 : services;
    return {
      nodes: isDenied ? 0 : 1,
      services: listedServices,
      instances: listedServices,
      restricted: isDenied,
      emptied: 0,
    };
  }

  #respond(name: RequestName): void {
    const { actor } = this.#takeRequest(name);
    if (name === 'surveying') {
      settleCall(actor, {
        value: { outcome: 'read', survey: { nodes: 1, services: 1, transport: 'HTTP/1.1' } } satisfies SurveyOutcome,
      });
      return;
    }
    const reading = this.#currentReading;
    const isRepeated = name === 'verifying' && reading.nodes > 0 && !reading.restricted;
    this.#set({
      lastReading: reading,
      repeatCount: isRepeated ? Math.min(this.#state.repeatCount + 1, minRepeated) : 0,
    });
    settleCall(actor, { value: { outcome: 'read', reading } satisfies ReadOutcome });
  }

  #fail(name: RequestName, status: number): void {
    const { actor } = this.#takeRequest(name);
    if (name === 'verifying') this.#set({ repeatCount: 0 });
    settleCall(actor, { value: { outcome: 'failed', failure: { reason: 'failed', status }, draw: 0.5 } });
  }

  #respondToWatch(): void {
    const { watch, version, history } = this.#state;
    const { actor } = watch!;
    if (watch!.history < history) {
      this.#endWatch({ type: 'index.regressed', query: 'services' });
      return;
    }
    this.#set({ watch: { ...watch!, version }, lastReading: this.#currentReading });
    reportEvent(actor, { type: 'catalog.changed', reading: this.#currentReading });
  }

  /** A watch reports its first failure, then does nothing. */
  #endWatch(reason: IndexRegressed | QueryFailed): void {
    const { actor } = this.#state.watch!;
    this.#set({ watch: undefined });
    reportEvent(actor, { ...reason });
  }

  // ---- the charts

  #machine(catalog: typeof consulCatalogMachine): typeof consulMachine {
    const requestOf = <Outcome, Input>(name: RequestName) =>
      scriptedPromise<Outcome, Input>(
        ({ self }) => this.#beginRequest(name, self),
        ({ self }) => {
          if (this.#state.requests[name] === self) this.#takeRequest(name);
        },
      );
    return consulMachine.provide({
      actors: {
        listDatacenters: scriptedCallback<{ type: never }, undefined>({
          start: ({ self }) => reportEvent(self, { type: 'datacenters.listed', datacenters: [''] }),
        }),
        consulCatalog: catalog.provide({
          actors: {
            watchCredentials: scriptedCallback<{ type: never }, ConsulCatalogInput>({
              start: ({ self }) => {
                this.#credentials = self;
              },
            }),
            surveyCatalog: requestOf<SurveyOutcome, ConsulCatalogInput>('surveying'),
            readCatalog: scriptedPromise<ReadOutcome, ReadOrder>(
              ({ self, input }) => this.#beginRequest(input.consistent ? 'verifying' : 'reading', self),
              ({ self, input }) => {
                const name = input.consistent ? 'verifying' : 'reading';
                if (this.#state.requests[name] !== self) return;
                this.#takeRequest(name);
                // A read without a response resets the repetitions.
                if (name === 'verifying') this.#set({ repeatCount: 0 });
              },
            ),
            watchCatalog: scriptedCallback<{ type: never }, ConsulWatchOrder>({
              start: ({ self }) => {
                const { version, history } = this.#state;
                this.#set({ watch: { actor: self, version, history }, burst: 0 });
              },
              stop: ({ self }) => {
                if (this.#state.watch?.actor === self) this.#set({ watch: undefined });
              },
            }),
          },
          actions: {
            applyCatalog: () => this.#serve(),
            publishHeld: () => this.#set({ repeatCount: 0 }),
          },
        }),
      },
    });
  }

  #beginRequest(name: RequestName, actor: AnyActorRef): void {
    const { burst, requests } = this.#state;
    if (burst >= maxBurst)
      this.#recordViolation('no request is repeated without a delay', `${name} after ${burst} others`);
    this.#set({ requests: { ...requests, [name]: actor }, burst: burst + 1 });
  }

  #serve(): void {
    const { lastReading, servedCount, repeatCount } = this.#state;
    if (lastReading === undefined) {
      this.#recordViolation('every served catalog was read', 'nothing was read');
      return;
    }
    const servedBefore = servedCount ?? 0;
    if (lastReading.services === 0 && servedBefore > 0 && repeatCount < minRepeated && !this.#isAccepted) {
      this.#recordViolation(
        'no service is removed without a confirmation',
        `${servedBefore} services, repeated ${repeatCount} times`,
      );
    }
    this.#set({ servedCount: lastReading.services, repeatCount: 0 });
  }

  get #isAccepted(): boolean {
    const catalog = [...this.#system.actors()].find(({ id }) => id === 'consul-catalog-1')!;
    return (catalog.getSnapshot() as { context: { cause: string } }).context.cause === 'accepted';
  }

  #takeRequest(name: RequestName): { readonly actor: AnyActorRef } {
    const { [name]: actor, ...rest } = this.#state.requests;
    this.#set({ requests: rest });
    return { actor: actor! };
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}
