/**
 * Admission by load for the explorer: the real chart `stream-admission`, with a queue of clients. The choices of the explorer: a
 * client arrives (`arrive`), receives its first response (`respond`), never completes (`stall`), so that the limit releases its slot
 * (`expire`), or closes its connection while it waits (`vanish`); and the result of a measurement (`measure:slack`, `measure:near`,
 * `measure:overloaded`).
 *
 * Bounds: numbers of clients and of faults (`stall`, `vanish`, and measurements without slack).
 */
import type { AnyActorRef } from 'xstate';
import {
  initialSlots,
  maxSlots,
  minSlots,
  streamAdmissionMachine,
} from '../../machines/discovery/xds/stream-admission.machine.ts';
import type { LoadMeasured } from '../../machines/discovery/xds/stream-admission-protocol.ts';
import { reportEvent, scriptedCallback } from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

const loadReports: Readonly<Record<string, Omit<LoadMeasured, 'type' | 'isFull'>>> = {
  slack: { turnMs: 1, requests: 0, proxies: 0 },
  near: { turnMs: 10, requests: 0, proxies: 0 },
  overloaded: { turnMs: 50, requests: 0, proxies: 0 },
};

export interface AdmissionBounds {
  readonly clients: number;
  readonly faults: number;
}

interface State extends AdmissionBounds {
  readonly waitingCount: number;
  /** Clients that have a slot, including stalled ones. */
  readonly inProgress: number;
  readonly stalledCount: number;
  /** Number of slots that the chart has ordered. */
  readonly slots: number;
  /** The measuring effect; `undefined` while nothing is measured. */
  readonly load: AnyActorRef | undefined;
  readonly violations: readonly InvariantViolation[];
}

export class AdmissionExploration implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #system = new SymbolicSystem();
  readonly #root: AnyActorRef;
  #state: State;

  constructor(bounds: AdmissionBounds, chart: typeof streamAdmissionMachine = streamAdmissionMachine) {
    this.#state = {
      ...{ ...bounds, waitingCount: 0, inProgress: 0, stalledCount: 0 },
      ...{ slots: initialSlots, load: undefined, violations: [] },
    };
    const machine = chart.provide({
      actors: {
        load: scriptedCallback<{ type: never }, undefined>({
          start: ({ self }) => this.#set({ load: self }),
          stop: () => this.#set({ load: undefined }),
        }),
      },
      actions: { applySlots: (_, { slots }) => this.#set({ slots }) },
    });
    this.#root = this.#system.start(machine, { id: 'stream-admission', input: undefined });
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  /** Whether no client waits. */
  get isGoalReached(): boolean {
    return this.#state.waitingCount === 0;
  }

  choices(): readonly WorldChoice[] {
    const { clients, faults, waitingCount, inProgress, stalledCount, load, violations } = this.#state;
    if (violations.length > 0) return [];
    const isMeasuring = load !== undefined;
    const all: [name: string, isPossible: boolean, isFree: boolean][] = [
      ['arrive', clients > 0, false],
      ['respond', inProgress > stalledCount, true],
      ['expire', stalledCount > 0, true],
      ['stall', faults > 0 && inProgress > stalledCount, false],
      ['vanish', faults > 0 && waitingCount > 0, false],
      ['measure:slack', isMeasuring, true],
      ['measure:near', faults > 0 && isMeasuring, false],
      ['measure:overloaded', faults > 0 && isMeasuring, false],
    ];
    return all.flatMap(([name, isPossible, free]) => (isPossible ? [{ name, free }] : []));
  }

  apply(choice: string): void {
    const { clients, faults, waitingCount, inProgress, stalledCount } = this.#state;
    const [kind, load = ''] = choice.split(':');
    if (kind === 'stall' || kind === 'vanish' || (kind === 'measure' && load !== 'slack'))
      this.#set({ faults: faults - 1 });
    if (kind === 'arrive') this.#arrive(clients - 1);
    else if (kind === 'respond') this.#set({ inProgress: inProgress - 1 });
    else if (kind === 'expire') this.#set({ inProgress: inProgress - 1, stalledCount: stalledCount - 1 });
    else if (kind === 'stall') this.#set({ stalledCount: stalledCount + 1 });
    else if (kind === 'vanish') this.#wait(waitingCount - 1);
    else this.#measure(loadReports[load]!);
    this.#admit();
    this.#checkInvariants();
  }

  key(): string {
    const { load, ...state } = this.#state;
    const { value, context } = this.#root.getSnapshot() as { value: unknown; context: object };
    return JSON.stringify([state, load !== undefined, value, context]);
  }

  save(): () => void {
    const state = this.#state;
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      restore();
    };
  }

  #arrive(clients: number): void {
    const { waitingCount, inProgress, slots } = this.#state;
    this.#set({ clients });
    if (waitingCount === 0 && inProgress < slots) this.#set({ inProgress: inProgress + 1 });
    else this.#wait(waitingCount + 1);
  }

  #admit(): void {
    while (this.#state.waitingCount > 0 && this.#state.inProgress < this.#state.slots) {
      this.#set({ inProgress: this.#state.inProgress + 1 });
      this.#wait(this.#state.waitingCount - 1);
    }
  }

  /** The queue reports its first client, and when it is empty. */
  #wait(waiting: number): void {
    const waitingBefore = this.#state.waitingCount;
    this.#set({ waitingCount: waiting });
    if (waitingBefore === 0) this.#root.send({ type: 'clients.queued' });
    if (waiting === 0) this.#root.send({ type: 'clients.admitted' });
  }

  #measure(load: Omit<LoadMeasured, 'type' | 'isFull'>): void {
    const { inProgress, slots } = this.#state;
    reportEvent(this.#state.load!, { type: 'load.measured', ...load, isFull: inProgress >= slots });
  }

  // ---- violations

  #checkInvariants(): void {
    const { waitingCount, slots, load } = this.#state;
    const { context } = this.#root.getSnapshot() as { context: { slots: number } };
    if (waitingCount > 0 !== (load !== undefined))
      this.#violate('the load is measured while clients wait', `${waitingCount} wait`);
    if (slots < minSlots || slots > maxSlots) this.#violate('the number of slots is within its bounds', `${slots}`);
    if (waitingCount === 0 && slots !== initialSlots)
      this.#violate('the number of slots is the initial one while no client waits', `${slots}`);
    if (slots !== context.slots) this.#violate('the queue has the slots of the chart', `${slots}, ${context.slots}`);
    for (const failure of this.#system.failures) this.#violate('no chart fails', failure);
  }

  #violate(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}
