/**
 * Two candidates for one duty, for the explorer: their real charts with scripted effects, and an API server with one Lease. The choices of the
 * explorer: a request is accepted (`take:leader-1`) and gets a response (`tell:leader-1`) or none (`lose:…`), or is accepted after its client has
 * given up (`delay:…`, `arrive`), or is rejected; the server stops and returns; an unknown client writes to the Lease (`touch`); a replica is killed,
 * or resigns; and the next deadline (`tick:leader-1.leaseTime`).
 *
 * Whether a replica may consider itself the leader depends on the send time of a claim or renewal, as in its gate. Not modelled: paused processes,
 * clock drift, and whether a leader emerges (leader-random.ts). Bounds: number of faults.
 */
import type { AnyActorRef } from 'xstate';
import {
  electedWriterMachine,
  type WriteOutcome,
  type WriteRun,
} from '../../machines/discovery/election/elected-writer.machine.ts';
import {
  type LeaseOrder,
  type LeaseSighting,
  type LeaseTimes,
  type LeaseWriteResult,
  leaderMachine,
} from '../../machines/discovery/election/leader.machine.ts';
import { scriptedCallback, scriptedPromise, settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

const names = ['leader-1', 'leader-2'] as const;
type Name = (typeof names)[number];

/** Multiples of one value, which limits their possible orders; the term and the Lease are unchanged. */
const times: LeaseTimes = { leaseMs: 15_000, termMs: 10_000, retryMs: 5_000, requestLimitMs: 4_500 };
const delays = { renewRetry: 5_000, resignLimit: 5_000 };
const fixedDraw = 0;

interface Request {
  readonly actor: AnyActorRef;
  readonly order: LeaseOrder | undefined;
  /** The server's response to an accepted request. */
  readonly response?: LeaseSighting | LeaseWriteResult;
  /** Whether the request is never accepted and gets no response. */
  readonly isLost?: boolean;
}

interface State {
  readonly faults: number;
  readonly isUp: boolean;
  /** Version of the Lease; 0 without a Lease. `record`: version of its holder's last write. */
  readonly version: number;
  readonly record: number;
  readonly holder: Name | '';
  readonly requests: Readonly<Partial<Record<Name, Request>>>;
  /** Claims and renewals whose client has given up. */
  readonly delayedRequests: readonly (LeaseOrder & { readonly by: Name })[];
  /** Candidates and leaders. */
  readonly runningReplicas: readonly Name[];
  readonly violations: readonly InvariantViolation[];
}

export interface LeaderCharts {
  readonly leader: typeof leaderMachine;
  /** A deliberate bug: the server accepts any version. */
  readonly takesAll?: boolean;
}

/** The end of a replica's term, and of the term that it has requested. */
const gateOf = (name: Name): string => `${name}.gate`;
const sentOf = (name: Name): string => `${name}.sent`;

const text = (version: number): string => (version === 0 ? '' : `v${version}`);

export class LeaderExploration implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #system = new SymbolicSystem();
  readonly #roots: ReadonlyMap<Name, AnyActorRef>;
  readonly #charts: LeaderCharts;
  #state: State;

  constructor(faults: number, charts: Partial<LeaderCharts> = {}) {
    this.#charts = { leader: leaderMachine, ...charts };
    this.#state = {
      ...{ faults, isUp: true, version: 0, record: 0, holder: '', requests: {}, delayedRequests: [] },
      ...{ runningReplicas: names, violations: [] },
    };
    this.#roots = new Map(
      names.map((name, index) => {
        const input = { lease: name, number: index + 1, times };
        return [name, this.#system.start(this.#machine(name), { id: name, input })];
      }),
    );
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  choices(): readonly WorldChoice[] {
    const { faults, isUp, requests, delayedRequests, runningReplicas, violations, version } = this.#state;
    if (violations.length > 0) return [];
    const isFault = faults > 0;
    const of = (name: Name): [string, boolean, boolean][] => {
      const request = requests[name];
      const isWaiting = request !== undefined && request.isLost !== true;
      const isSent = isWaiting && request.response === undefined;
      return [
        [`take:${name}`, true, isSent && isUp],
        [`fail:${name}`, true, isSent && !isUp],
        [`tell:${name}`, true, isWaiting && !isSent],
        [`lose:${name}`, false, isFault && isWaiting],
        [`refuse:${name}`, false, isFault && isSent],
        [`delay:${name}`, false, isFault && isSent && request.order !== undefined],
        [`kill:${name}`, false, isFault && runningReplicas.includes(name)],
        [`resign:${name}`, false, isFault && runningReplicas.includes(name)],
      ];
    };
    const all: [name: string, free: boolean, isPossible: boolean][] = [
      ...names.flatMap(of),
      ['arrive', true, isUp && delayedRequests.length > 0],
      ['away', false, isFault && isUp],
      ['back', true, !isUp],
      ['touch', false, isFault && version > 0],
      ...this.#system.zone.firableTimers().map((timer): [string, boolean, boolean] => [`tick:${timer}`, true, true]),
    ];
    // A pending response may be late, but not forever.
    const isLate = (choice: string): boolean => {
      const name = names.find((one) => choice === `tick:${one}.answerLimit`);
      return (
        choice === 'arrive' || (name !== undefined && requests[name] !== undefined && requests[name].isLost !== true)
      );
    };
    return all.flatMap(([name, free, isPossible]) =>
      isPossible ? [{ name, free, ...(isLate(name) && { fair: false }) }] : [],
    );
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    const name = subject as Name;
    const { faults, delayedRequests, requests, version } = this.#state;
    if (['lose', 'refuse', 'delay', 'kill', 'resign', 'away', 'touch'].includes(kind))
      this.#set({ faults: faults - 1 });
    switch (kind) {
      case 'take':
        this.#changeRequest(name, { response: this.#leaseResult(requests[name]!.order, name) });
        break;
      case 'tell':
        this.#respond(name, requests[name]!.response!);
        break;
      case 'fail':
      case 'refuse':
        this.#respond(name, { outcome: 'failed', reason: kind, retryAfterMs: 0, draw: fixedDraw });
        break;
      case 'lose':
        this.#changeRequest(name, { isLost: true });
        break;
      case 'delay':
        this.#set({ delayedRequests: [...delayedRequests, { ...requests[name]!.order!, by: name }] });
        this.#changeRequest(name, { isLost: true });
        break;
      case 'arrive':
        this.#set({ delayedRequests: delayedRequests.slice(1) });
        this.#leaseResult(delayedRequests[0], delayedRequests[0]!.by);
        break;
      case 'kill':
        this.#killReplica(name);
        break;
      case 'resign':
        this.#removeReplica(name);
        this.#roots.get(name)!.send({ type: 'leader.resign' });
        break;
      case 'away':
        this.#set({ isUp: false });
        break;
      case 'back':
        this.#set({ isUp: true });
        break;
      case 'touch':
        this.#set({ version: version + 1 });
        break;
      default:
        this.#system.fire(subject);
    }
    this.#system.elapse();
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  /** Versions grow without a limit: only their order is part of the state. */
  key(): string {
    const { requests, ...state } = this.#state;
    const requestKeys = Object.entries(requests).map(([name, { actor: _, ...rest }]) => [name, rest]);
    const { version, record } = state;
    let key = JSON.stringify([{ ...state, version: text(version), record: text(record) }, requestKeys.sort()]);
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
      if (value === undefined) continue;
      // Omits constants and values that are only reported.
      const { times: _, draw: __, holder: ___, ...contextFields } = { times, draw: fixedDraw, holder: '', ...context };
      key += `${actor.id} ${JSON.stringify([value, contextFields])}\n`;
    }
    const versions = [...new Set([...key.matchAll(/"v(\d+)"/g)].map(([, number]) => Number(number)))].sort(
      (a, b) => a - b,
    );
    return (
      key.replaceAll(/"v(\d+)"/g, (_, number) => `"${versions.indexOf(Number(number))}"`) + this.#system.zone.orderKey()
    );
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

  #leaseResult(order: LeaseOrder | undefined, requester: Name): LeaseSighting | LeaseWriteResult {
    const { version, record, holder } = this.#state;
    if (order === undefined) {
      if (version === 0) return { outcome: 'absent', draw: fixedDraw };
      const holderName = holder === '' ? 'nobody' : holder === requester ? 'this one' : 'another';
      return {
        ...{ outcome: 'seen', version: text(version), record: text(record), holder: holderName, identity: holder },
        ...{ leaseMs: times.leaseMs, draw: fixedDraw },
      };
    }
    if (order.version !== text(version) && this.#charts.takesAll !== true)
      return { outcome: 'conflict', draw: fixedDraw };
    const next = version + 1;
    this.#set({ version: next, record: next, holder: order.operation === 'release' ? '' : requester });
    return { outcome: 'taken', version: text(next), sent: { monotonicMs: 0, wallMs: 0 }, tookMs: 0, draw: fixedDraw };
  }

  // ---- the charts

  #machine(name: Name) {
    const requestOf = <Output, Input>(orderOf: (input: Input) => LeaseOrder | undefined) =>
      scriptedPromise<Output, Input>(
        ({ self, input }) => this.#request(name, self, orderOf(input)),
        ({ self }) => this.#removeRequest(name, self),
      );
    return this.#charts.leader.provide({
      delays,
      actors: {
        readLease: requestOf<LeaseSighting, { lease: string }>(() => undefined),
        writeLease: requestOf<LeaseWriteResult, LeaseOrder>((order) => order),
        finishWrites: scriptedPromise<undefined, { lease: string }>(({ self }) =>
          settleCall(self, { value: undefined }),
        ),
        electedWriter: electedWriterMachine.provide({
          actors: {
            watchDuty: scriptedCallback<{ type: never }, { lease: string }>({ start: () => {} }),
            writeDuty: scriptedPromise<WriteOutcome, WriteRun>(() => {}),
          },
        }),
      },
      actions: {
        startTerm: () => this.#becomeLeader(name),
        extendTerm: () => this.#becomeLeader(name),
        endTerm: () => this.#endTerm(name),
        reportElected: () => {},
        reportLost: () => {},
        reportFailed: () => {},
        reportResigned: () => {},
      },
    });
  }

  #request(name: Name, actor: AnyActorRef, order: LeaseOrder | undefined): void {
    this.#set({ requests: { ...this.#state.requests, [name]: { actor, order } } });
    if (order === undefined || order.operation === 'release') return;
    this.#system.disarm(sentOf(name));
    this.#system.arm(sentOf(name), times.termMs, 'mark');
  }

  /** Its claim or renewal was accepted: it leads from the time at which the request was sent. */
  #becomeLeader(name: Name): void {
    this.#system.disarm(gateOf(name));
    this.#system.rename(sentOf(name), gateOf(name));
    const other = names.find((one) => one !== name)!;
    const { zone } = this.#system;
    if (zone.has(gateOf(other)) && !zone.isOverdue(gateOf(other)))
      this.#recordViolation('never two leaders', `${name} does, and ${other} may`);
  }

  #endTerm(name: Name): void {
    this.#system.disarm(gateOf(name));
  }

  #removeReplica(name: Name): void {
    this.#set({ runningReplicas: this.#state.runningReplicas.filter((one) => one !== name) });
  }

  /** Stops a replica: it sends nothing more, and its requests get no response. */
  #killReplica(name: Name): void {
    this.#system.kill(this.#roots.get(name)!);
    this.#system.forgetKilled(this.#system.zone.names('mark').filter((mark) => mark.startsWith(`${name}.`)));
    const { [name]: _, ...rest } = this.#state.requests;
    this.#set({ requests: rest });
    this.#removeReplica(name);
  }

  #respond(name: Name, response: LeaseSighting | LeaseWriteResult): void {
    const { [name]: request, ...rest } = this.#state.requests;
    this.#set({ requests: rest });
    settleCall(request!.actor, { value: response });
  }

  #removeRequest(name: Name, actor: AnyActorRef): void {
    const { [name]: request, ...rest } = this.#state.requests;
    if (request?.actor !== actor) return;
    this.#set({ requests: rest });
    this.#system.disarm(sentOf(name));
  }

  #changeRequest(name: Name, change: Partial<Request>): void {
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
