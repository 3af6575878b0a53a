/**
 * One kind on one API server, for the explorer: the two real charts with scripted effects, and a server that has only versions. The choices of the
 * explorer: a change (`change`), a response of the server (`answer:stream`; `refuse:list:429` is a fault), the end of a process and its start
 * (`kill`, `start`), a dead connection without an event (`silence`), a compacted history (`compact`), restored data (`restore`), and the next
 * deadline (`tick:informer-1.retryDelay`).
 *
 * Bounds: numbers of changes and faults. A server is restored to its first state; it changes again only after that was observed, because its downtime
 * exceeds the time to reach the same version again. There are fewer faults than the number after which a kind counts as absent.
 */
import type { AnyActorRef } from 'xstate';
import { apiServerMachine, type PingResult } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine, type SetOrder } from '../../machines/discovery/kubernetes/informer.machine.ts';
import type { RequestFailure, ResourceName } from '../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

export interface ClusterBounds {
  readonly changes: number;
  readonly faults: number;
  /** `known`: the server sends lists as streams. `endless`: streams without an end. `unknown`: it does not support them. */
  readonly streams: 'known' | 'endless' | 'unknown';
  /** Whether the server may end watches right after they open. */
  readonly endsWatchesEarly?: boolean;
}

export interface ClusterCharts {
  readonly server: typeof apiServerMachine;
  readonly informer: typeof informerMachine;
}

type RequestName = 'stream' | 'list' | 'check' | 'ping' | 'hand';

interface Request {
  readonly actor: AnyActorRef;
  readonly order?: SetOrder;
  /** `live` means a response, `dead` none, `unreachable` or `closed` a failure. */
  readonly transportState: 'live' | 'dead' | 'unreachable' | 'closed';
  /** The last version sent on an open watch. */
  readonly sentVersion?: number;
}

interface State {
  readonly changes: number;
  readonly faults: number;
  readonly isUp: boolean;
  readonly connection: 'none' | 'live' | 'dead';
  readonly version: number;
  readonly wasRestored: boolean;
  readonly compactedVersion: number;
  /** Version of the server's state in the store; empty before anything was published. */
  readonly storedVersion: string;
  readonly appliedVersion: string;
  /** Number of requests since the last delay. */
  readonly burst: number;
  readonly requests: Readonly<Partial<Record<RequestName, Request>>>;
  readonly violations: readonly InvariantViolation[];
}

const firstVersion = 1;
/** Maximum number of consecutive requests if each fails. */
const maxBurst = 10;
const isPause = /\.(retryDelay|absentDelay|probePause|pingInterval|pingLimit|endLimit|answerLimit|shortWatch)$/;
const refusalCodes = [410, 429, 500, 401, 404] as const;

/** All draws are equal in this world, so they do not distinguish states. */
const withoutDraws = (name: string, value: unknown): unknown => (name === 'draw' ? undefined : value);

export class ClusterExploration implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #bounds: ClusterBounds;
  readonly #system = new SymbolicSystem();
  #state: State;

  constructor(bounds: ClusterBounds, charts: Partial<ClusterCharts> = {}) {
    this.#bounds = bounds;
    this.#state = {
      ...{ changes: bounds.changes, faults: bounds.faults, isUp: true, connection: 'none', version: firstVersion },
      ...{
        wasRestored: false,
        compactedVersion: 0,
        storedVersion: '',
        appliedVersion: '',
        burst: 0,
        requests: {},
        violations: [],
      },
    };
    this.#system.start(this.#machine(charts), {
      id: 'api-server-0',
      input: { server: 'cluster', resources: ['v1/services'], firstInformer: 1 },
    });
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  get isGoalReached(): boolean {
    return this.#state.isUp && this.#state.storedVersion === this.#serverState;
  }

  choices(): readonly WorldChoice[] {
    const { changes, faults, isUp, connection, version, wasRestored, compactedVersion, storedVersion, violations } =
      this.#state;
    if (violations.length > 0) return [];
    const isFault = faults > 0;
    const mayChange = changes > 0 && (!wasRestored || storedVersion === this.#serverState);
    const names: [name: string, free: boolean, isPossible: boolean][] = [
      ['change', false, isUp && mayChange],
      ['kill', false, isUp && isFault],
      ['start', true, !isUp],
      ['silence', false, isUp && isFault && connection === 'live'],
      ['compact', false, isUp && isFault && compactedVersion < version],
      ['restore', false, !isUp && isFault && version > firstVersion],
      ...Object.entries(this.#state.requests).flatMap(([name, request]): [string, boolean, boolean][] => [
        [`answer:${name}`, true, this.#isAnswerable(name as RequestName, request)],
        [`fail:${name}`, true, request.transportState === 'unreachable' || request.transportState === 'closed'],
        [
          `end:${name}`,
          true,
          name === 'stream' && request.sentVersion !== undefined && this.#bounds.endsWatchesEarly === true,
        ],
        ...refusalCodes.map((code): [string, boolean, boolean] => [
          `refuse:${name}:${code}`,
          false,
          isFault &&
            ['stream', 'list', 'check'].includes(name) &&
            request.transportState === 'live' &&
            request.sentVersion === undefined,
        ]),
      ]),
      ...this.#system.zone.firableTimers().map((timer): [string, boolean, boolean] => [`tick:${timer}`, true, true]),
    ];
    // A pending response may be late, but not forever.
    const isLate = (name: string): boolean =>
      name.endsWith('.pingLimit') && this.#state.requests.ping?.transportState === 'live';
    return names.flatMap(([name, free, isPossible]) =>
      isPossible ? [{ name, free, ...(isLate(name) && { fair: false }) }] : [],
    );
  }

  apply(choice: string): void {
    const [kind = '', subject = '', code = ''] = choice.split(':');
    const { version, changes, faults } = this.#state;
    if (['kill', 'silence', 'compact', 'restore', 'refuse'].includes(kind)) this.#set({ faults: faults - 1 });
    switch (kind) {
      case 'change':
        this.#set({ version: version + 1, changes: changes - 1 });
        break;
      case 'kill':
        this.#set({ isUp: false });
        if (this.#state.connection !== 'dead') this.#breakRequests('closed');
        break;
      case 'start':
        this.#set({ isUp: true });
        break;
      case 'silence':
        this.#breakRequests('dead');
        break;
      case 'compact':
        this.#set({ compactedVersion: version });
        break;
      case 'restore':
        this.#set({ version: firstVersion, compactedVersion: firstVersion, wasRestored: true });
        break;
      case 'answer':
        this.#respond(subject as RequestName);
        break;
      case 'fail':
        this.#fail(subject as RequestName);
        break;
      case 'refuse':
        this.#failRequest(subject as RequestName, { kind: 'status', code: Number(code), message: code });
        break;
      case 'end':
        reportEvent(this.#takeRequest('stream').actor, { type: 'watch.ended' });
        break;
      default:
        if (isPause.test(subject)) this.#set({ burst: 0 });
        this.#system.fire(subject);
    }
    this.#system.elapse();
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  key(): string {
    const { requests, ...state } = this.#state;
    const known = Object.entries(requests).map(([name, { actor: _, ...requestKeys }]) => [name, requestKeys]);
    let key = JSON.stringify([state, known.sort()]) + this.#system.zone.orderKey();
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
      if (value !== undefined) key += `${actor.id} ${JSON.stringify([value, context], withoutDraws)}\n`;
    }
    return key;
  }

  save(): () => void {
    const state = this.#state;
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      restore();
    };
  }

  // ---- the server

  /** The current state; the first state is the same before and after a restore. */
  get #serverState(): string {
    const { version, wasRestored } = this.#state;
    return version === firstVersion ? 'first' : `${wasRestored ? 'restored' : 'old'} ${version}`;
  }

  #isAnswerable(name: RequestName, { transportState, order, sentVersion }: Request): boolean {
    if (name === 'hand') return true;
    if (transportState !== 'live') return false;
    if (name === 'stream' && sentVersion !== undefined) return sentVersion < this.#state.version;
    // An endless response is not started: a chart could not distinguish it from a missing one.
    return !(name === 'stream' && order?.initial === true && this.#bounds.streams === 'endless');
  }

  #respond(name: RequestName): void {
    const { actor, order, sentVersion } = this.#state.requests[name]!;
    const { version, compactedVersion } = this.#state;
    const now = String(version);
    if (name === 'ping' || name === 'hand') {
      this.#takeRequest(name);
      settleCall(actor, { value: name === 'hand' ? { objects: 1 } : { outcome: 'answered' } });
    } else if (name === 'check') {
      this.#takeRequest(name);
      reportEvent(actor, { type: 'version.received', version: now });
    } else if (sentVersion !== undefined) {
      this.#changeRequest('stream', { sentVersion: version });
      this.#set({ storedVersion: this.#serverState });
      reportEvent(actor, { type: 'objects.changed', version: now, objects: 1 });
    } else if (name === 'stream' && order?.initial === false) {
      if (Number(order.version) + 1 < compactedVersion)
        this.#failRequest(name, { kind: 'status', code: 410, message: 'gone' });
      else this.#changeRequest(name, { sentVersion: Number(order.version) });
    } else if (order?.basis === 'not older' && Number(order.version) > version) {
      this.#failRequest(name, { kind: 'status', code: 504, message: 'too large', causes: ['ResourceVersionTooLarge'] });
    } else if (name === 'stream' && this.#bounds.streams === 'unknown') {
      this.#failRequest(name, { kind: 'status', code: 422, message: 'invalid' });
    } else {
      this.#set({ appliedVersion: this.#serverState });
      if (name === 'stream') this.#changeRequest(name, { sentVersion: version });
      else this.#takeRequest(name);
      reportEvent(actor, { type: name === 'stream' ? 'initial-list.ended' : 'list.ended', version: now });
    }
  }

  #fail(name: RequestName): void {
    const { actor, transportState } = this.#takeRequest(name);
    const failure: RequestFailure = {
      kind: transportState === 'closed' ? 'closed' : 'unreachable',
      message: transportState,
    };
    if (name === 'ping')
      settleCall(actor, { value: { outcome: 'failed', reason: transportState, draw: 0.5 } satisfies PingResult });
    else reportEvent(actor, { type: 'request.failed', failure, draw: 0.5 });
  }

  #failRequest(name: RequestName, failure: RequestFailure): void {
    reportEvent(this.#takeRequest(name).actor, { type: 'request.failed', failure, draw: 0.5 });
  }

  /** Redirects everything that uses the connection. */
  #breakRequests(way: 'dead' | 'closed'): void {
    const requests = Object.entries(this.#state.requests).map(([name, request]) => [
      name,
      request.transportState === 'live' && name !== 'hand' ? { ...request, transportState: way } : request,
    ]);
    this.#set({ requests: Object.fromEntries(requests), connection: way === 'dead' ? 'dead' : 'none' });
  }

  // ---- the charts

  #machine({ server = apiServerMachine, informer = informerMachine }: Partial<ClusterCharts>): typeof apiServerMachine {
    const requestOf = (name: RequestName) => ({
      start: ({ self, input }: { self: AnyActorRef; input: unknown }) =>
        this.#beginRequest(name, self, input as SetOrder),
      stop: ({ self }: { self: AnyActorRef }) => this.#removeRequest(name, self),
    });
    const call = requestOf('ping');
    const handing = requestOf('hand');
    return server.provide({
      actors: {
        informer: informer.provide({
          actors: {
            watchKind: scriptedCallback<{ type: never }, SetOrder>(requestOf('stream')),
            listKind: scriptedCallback<{ type: never }, SetOrder>(requestOf('list')),
            checkHistory: scriptedCallback<{ type: never }, { resource: ResourceName }>(requestOf('check')),
            handOver: scriptedPromise<{ objects: number }, { resource: ResourceName; absent: boolean }>(
              (pendingCall) => {
                this.#handOver(pendingCall.input.absent);
                handing.start(pendingCall);
              },
              handing.stop,
            ),
          },
        }),
        ping: scriptedPromise<PingResult, { server: string }>(call.start, call.stop),
        watchDefinitions: scriptedCallback<{ type: never }, { resources: ResourceName[] }>({ start: () => {} }),
      },
      actions: { reconnect: () => this.#set({ connection: 'none' }) },
    });
  }

  #beginRequest(name: RequestName, actor: AnyActorRef, order: SetOrder): void {
    const { isUp, connection, requests, burst } = this.#state;
    const way = connection === 'dead' ? 'dead' : isUp ? 'live' : 'unreachable';
    if (name !== 'hand' && way === 'live') this.#set({ connection: 'live' });
    const isRequest = name === 'stream' || name === 'list' || name === 'check';
    if (isRequest) this.#set({ burst: burst + 1 });
    if (burst >= maxBurst)
      this.#recordViolation('no request is repeated without a delay', `${name} after ${burst} others`);
    this.#set({
      requests: { ...requests, [name]: { actor, transportState: way, ...(order !== undefined && { order }) } },
    });
  }

  #handOver(isAbsent: boolean): void {
    const { storedVersion, appliedVersion } = this.#state;
    if (isAbsent && storedVersion !== '' && storedVersion !== 'nothing')
      this.#recordViolation('the published list is not emptied', `${storedVersion} was removed`);
    if (!isAbsent && appliedVersion === '')
      this.#recordViolation('every published list is complete', 'nothing was taken');
    const isOld = (name: string): boolean => name.startsWith('old');
    if (
      !isAbsent &&
      storedVersion !== appliedVersion &&
      isOld(storedVersion) &&
      isOld(appliedVersion) &&
      storedVersion > appliedVersion
    )
      this.#recordViolation('no older version replaces a newer one', `${appliedVersion} after ${storedVersion}`);
    this.#set({ storedVersion: isAbsent ? 'nothing' : appliedVersion, appliedVersion: '' });
  }

  #takeRequest(name: RequestName): Request {
    const { [name]: request, ...rest } = this.#state.requests;
    this.#set({ requests: rest });
    return request!;
  }

  #removeRequest(name: RequestName, actor: AnyActorRef): void {
    if (this.#state.requests[name]?.actor === actor) this.#takeRequest(name);
  }

  #changeRequest(name: RequestName, change: Partial<Request>): void {
    const { requests } = this.#state;
    this.#set({ requests: { ...requests, [name]: { ...requests[name]!, ...change } } });
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}
