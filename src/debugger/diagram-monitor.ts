import { advance, type Contract, type Cut, type ExpectedMessage, expectedAt, type Step } from './contract.ts';
import { type Binding, matchName, type NamePattern } from './diagram/name-pattern.ts';
import type { Message } from './message.ts';

/** What became of a diagram's activations. */
export interface ActivationCounts {
  started: number;
  completed: number;
  /** Ended without fault by a message of an `interrupted by` line, or by the end of a numbered participant. */
  interrupted: number;
  /** Still under way at the end of the trace. */
  live: number;
}

/** A message that a live activation speaks about and does not allow where it stands. */
export interface Refusal {
  expected: ExpectedMessage[];
  n: Binding;
  /** The record that began the activation. */
  startedAt: number;
  /** The last record that it accepted. */
  lastAccepted: number;
}

interface Activation {
  cuts: readonly Cut[];
  startedAt: number;
  lastAccepted: number;
  /** Records of the trace were lost while it was live: it may have moved on, or have ended. */
  blinded: boolean;
}

/** What a message is to a diagram. */
export interface Concern {
  /** The ways in which it is in the alphabet. */
  steps: readonly Step[];
  /** What N is in the activations that it may interrupt. */
  interruptions: readonly Binding[];
}

/** Of the live activations, those whose next messages are told; thousands may be live. */
const maxShown = 5;

/** Follows the activations of one diagram through a trace. */
export class DiagramMonitor {
  readonly contract: Contract;
  readonly #numbered: readonly NamePattern[];
  readonly #live = new Set<Activation>();
  /** Activations by what N may be in them. */
  readonly #byNumber = new Map<Binding, Set<Activation>>();
  readonly #counts = { started: 0, completed: 0, interrupted: 0 };
  /** After a loss of records: the numbers whose activations have been seen since. Undefined when nothing was lost. */
  #seenSinceLoss: Set<Binding> | undefined;

  constructor(contract: Contract) {
    this.contract = contract;
    // An effect of an actor may stop while the actor goes on: only the end of the actor itself ends what is told of it.
    this.#numbered = contract.diagram.participants
      .map(({ name }) => name)
      .filter((name) => name.numbered && !name.text.includes('/'));
  }

  counts(): ActivationCounts {
    return { ...this.#counts, live: this.#live.size };
  }

  /** Takes note of how things stand; the function that is returned brings that back, as often as it is called. */
  save(): () => void {
    const live = [...this.#live].map((activation) => ({ activation, was: { ...activation } }));
    const counts = { ...this.#counts };
    const seen = this.#seenSinceLoss === undefined ? undefined : [...this.#seenSinceLoss];
    return () => {
      this.#live.clear();
      this.#byNumber.clear();
      for (const { activation, was } of live) {
        this.#live.add(Object.assign(activation, was));
        this.#index(activation);
      }
      Object.assign(this.#counts, counts);
      this.#seenSinceLoss = seen === undefined ? undefined : new Set(seen);
    };
  }

  /** Identity: where the live activations stand. */
  key(): string {
    return [...this.#live].map(({ cuts }) => cuts.map(({ n, term }) => `${n} ${term.id}`).join()).join(';');
  }

  /** Offers a message to the live activations, and begins one if none takes it. */
  take(message: Message, { steps, interruptions }: Concern): { accepted: boolean; refusals: Refusal[] } {
    const refusals: Refusal[] = [];
    let taken = false;
    let interrupted = false;
    for (const activation of this.#concerned([...steps.map((step) => step.n), ...interruptions])) {
      // A number that is already spoken for binds no other activation.
      const moved = advance(this.contract, activation.cuts, steps, { mayBind: !taken });
      if (moved.outcome === 'accepted') {
        this.#moveOn(activation, moved.cuts, message);
        taken = true;
      } else if (
        activation.cuts.some((cut) => interruptions.some((n) => n === 'free' || cut.n === 'free' || n === cut.n))
      ) {
        this.#end(activation, 'interrupted');
        interrupted = true;
      } else if (moved.outcome === 'unconcerned') {
        this.#stand(activation, moved.cuts);
      } else if (activation.blinded) {
        if (this.#catchUp(activation, steps, message)) taken = true;
        else this.#end(activation, 'interrupted');
      } else if (activation.cuts.some((cut) => cut.term.optional) && this.#opening(steps).length > 0) {
        this.#end(activation, 'completed');
      } else {
        refusals.push(this.#refusal(activation));
        // One fault, one departure: go on from where the message would have been right, or as if it had not come.
        this.#catchUp(activation, steps, message);
      }
    }
    const begun = !taken && refusals.length === 0 && this.#begin(steps, message);
    return { accepted: taken || interrupted || begun, refusals };
  }

  /** An actor was stopped or failed: what an activation tells of it cannot go on. */
  actorEnded(name: string): void {
    for (const pattern of this.#numbered) {
      const n = matchName(pattern, name);
      if (n === undefined) continue;
      for (const activation of [...(this.#byNumber.get(n) ?? [])]) {
        const cuts = activation.cuts.filter((cut) => cut.n !== n);
        if (cuts.length === 0) this.#end(activation, 'interrupted');
        else this.#stand(activation, cuts);
      }
    }
  }

  /** Records were lost: live activations may have moved or ended meanwhile, and others may be half done. */
  recordsLost(): void {
    this.#seenSinceLoss = new Set();
    for (const activation of this.#live) activation.blinded = true;
  }

  /** What would have been right: the next arrows of live activations, those with these numbers if any, and the first ones. */
  expected(numbers: readonly Binding[]): ExpectedMessage[] {
    const concerned = this.#concerned(numbers);
    const live = (concerned.length > 0 ? concerned : [...this.#live]).slice(0, maxShown);
    return expectedAt(this.contract, [...live.flatMap((activation) => activation.cuts), this.#start]);
  }

  get #start(): Cut {
    return { n: 'free', term: this.contract.start };
  }

  /** Activations that a message with these numbers may concern; those whose N is fixed come first. */
  #concerned(numbers: readonly Binding[]): Activation[] {
    if (this.#live.size === 0) return [];
    const open = this.#byNumber.get('free') ?? new Set<Activation>();
    const bound = numbers.includes('free')
      ? [...this.#live]
      : numbers.flatMap((n) => [...(this.#byNumber.get(n) ?? [])]);
    return [...new Set(bound.filter((activation) => !open.has(activation))), ...open];
  }

  /** The cuts after a message that may be the first; none when it may not. */
  #opening(steps: readonly Step[], skipping = false): readonly Cut[] {
    const { outcome, cuts } = advance(this.contract, [this.#start], steps, { skipping });
    return outcome === 'accepted' ? cuts : [];
  }

  #begin(steps: readonly Step[], message: Message): boolean {
    // After a loss an activation is joined half-way, but each only once: then its begin is to be seen.
    const mayJoin = steps.some(({ n }) => this.#seenSinceLoss?.has(n) === false);
    const cuts = this.#opening(steps, mayJoin);
    if (cuts.length === 0) return false;
    const activation: Activation = { cuts: [], startedAt: message.seq, lastAccepted: message.seq, blinded: false };
    this.#counts.started++;
    this.#live.add(activation);
    this.#moveOn(activation, cuts, message);
    return true;
  }

  #moveOn(activation: Activation, cuts: readonly Cut[], message: Message): void {
    activation.lastAccepted = message.seq;
    this.#stand(activation, cuts);
  }

  #catchUp(activation: Activation, steps: readonly Step[], message: Message): boolean {
    const { outcome, cuts } = advance(this.contract, activation.cuts, steps, { skipping: true });
    if (outcome !== 'accepted') return false;
    activation.blinded = false;
    this.#moveOn(activation, cuts, message);
    return true;
  }

  /** Puts an activation where it now stands; when nothing can follow, it is over. */
  #stand(activation: Activation, cuts: readonly Cut[]): void {
    this.#forget(activation);
    activation.cuts = cuts;
    for (const { n } of cuts) this.#seenSinceLoss?.add(n);
    this.#index(activation);
    if (cuts.every((cut) => cut.term === this.contract.terms.empty)) this.#end(activation, 'completed');
  }

  #index(activation: Activation): void {
    for (const { n } of activation.cuts) {
      const peers = this.#byNumber.get(n);
      if (peers === undefined) this.#byNumber.set(n, new Set([activation]));
      else peers.add(activation);
    }
  }

  #end(activation: Activation, how: 'completed' | 'interrupted'): void {
    this.#counts[how]++;
    this.#forget(activation);
    this.#live.delete(activation);
  }

  #forget(activation: Activation): void {
    for (const { n } of activation.cuts) {
      const peers = this.#byNumber.get(n);
      peers?.delete(activation);
      if (peers?.size === 0) this.#byNumber.delete(n);
    }
  }

  #refusal(activation: Activation): Refusal {
    const { startedAt, lastAccepted } = activation;
    const numbers = new Set(activation.cuts.map((cut) => cut.n));
    return {
      expected: expectedAt(this.contract, activation.cuts),
      n: numbers.size === 1 ? activation.cuts[0]!.n : 'free',
      startedAt,
      lastAccepted,
    };
  }
}
