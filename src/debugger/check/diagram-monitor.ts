import { type Binding, matchName, type NamePattern } from '../diagram/name-pattern.ts';
import {
  type Activation,
  isActivationInterrupted,
  isNumberedContract,
  positionKey,
  type Uncertainty,
  unnumberedCuts,
} from './activation.ts';
import { advance, type Contract, type Cut, type ExpectedMessage, expectedAt, type Occurrence } from './contract.ts';
import type { Message } from './message.ts';

export interface ActivationCounts {
  started: number;
  completed: number;
  /** Activations ended without a deviation by an `interrupted by` message, or by the end of a numbered participant. */
  interrupted: number;
  live: number;
}

/** The message is in the alphabet of a live activation, but not allowed at its position. */
export interface RefusedMessage {
  expected: ExpectedMessage[];
  n: Binding;
  /** The record that began the activation, or that made it certain. */
  startedAt: number;
  lastAccepted: number;
}

export interface MessageResult {
  readonly accepted: boolean;
  readonly refusals: readonly RefusedMessage[];
  /** Called if no other diagram accepts the message: an uncertain activation then becomes certain. */
  readonly confirm?: () => void;
}

const maxShown = 5;
const noActivations: readonly Activation[] = [];

export class DiagramMonitor {
  readonly contract: Contract;
  readonly #numberedPatterns: readonly NamePattern[];
  readonly #liveActivations = new Set<Activation>();
  readonly #activationsByNumber = new Map<Binding, Set<Activation>>();
  readonly #counts = { started: 0, completed: 0, interrupted: 0 };
  /** `undefined` if no records were lost. */
  #uncertainty: Uncertainty | undefined;

  constructor(contract: Contract) {
    this.contract = contract;
    // An effect of an actor may stop while the actor continues: only the end of the actor itself interrupts activations.
    this.#numberedPatterns = contract.diagram.participants
      .map(({ name }) => name)
      .filter((name) => name.hasNumber && !name.text.includes('/'));
  }

  counts(): ActivationCounts {
    const isCounted = ({ startedAt }: Activation): boolean => startedAt > 0;
    return { ...this.#counts, live: [...this.#liveActivations].filter(isCounted).length };
  }

  save(): () => void {
    const savedActivations = [...this.#liveActivations].map((activation) => ({ activation, was: { ...activation } }));
    const counts = { ...this.#counts };
    const savedUncertainty =
      this.#uncertainty === undefined ? undefined : { ...this.#uncertainty, seen: [...this.#uncertainty.seenBindings] };
    return () => {
      this.#liveActivations.clear();
      this.#activationsByNumber.clear();
      for (const { activation, was } of savedActivations) {
        this.#liveActivations.add(Object.assign(activation, was));
        this.#index(activation);
      }
      Object.assign(this.#counts, counts);
      this.#uncertainty =
        savedUncertainty === undefined
          ? undefined
          : { ...savedUncertainty, seenBindings: new Set(savedUncertainty.seen) };
    };
  }

  key(): string {
    return [...this.#liveActivations].map(positionKey).join(';');
  }

  handleMessage(message: Message, occurrence: Occurrence): MessageResult {
    const refusals: RefusedMessage[] = [];
    let isHandled = false;
    let isInterrupted = false;
    const isUnseenMessage = this.#uncertainty !== undefined && this.#offerToUnseenActivations(occurrence);
    const uncertainActivations: Activation[] = [];
    for (const activation of this.#affectedActivations(occurrence.bindings)) {
      // If another activation accepted the message, the message does not determine N of this activation.
      const advanceResult = advance(this.contract, activation.cuts, occurrence, { mayBind: !isHandled });
      if (advanceResult.outcome === 'accepted') {
        this.#acceptMessage(activation, advanceResult.cuts, message);
        if (activation.isUncertain) uncertainActivations.push(activation);
        else isHandled = true;
      } else if (isActivationInterrupted(activation, occurrence)) {
        this.#endActivation(activation, 'interrupted');
        isInterrupted = true;
      } else if (advanceResult.outcome === 'outside') {
        this.#setCuts(activation, advanceResult.cuts);
      } else if (activation.isUncertain) {
        this.#endActivation(activation, 'interrupted');
      } else if (activation.cuts.some((cut) => cut.term.optional) && this.#openingCuts(occurrence).length > 0) {
        this.#endActivation(activation, 'completed');
      } else {
        refusals.push(this.#refusal(activation));
        // Continue as if the message had been expected here, or had not been sent, so that one error is reported once.
        this.#catchUp(activation, occurrence, message);
      }
    }
    const isUncertain = isUnseenMessage || uncertainActivations.length > 0;
    const newActivation =
      !isHandled && refusals.length === 0 ? this.#beginActivation(occurrence, message, isUncertain) : undefined;
    if (newActivation !== undefined && isUncertain) uncertainActivations.push(newActivation);
    const isAccepted = isHandled || isInterrupted || isUncertain || newActivation !== undefined;
    if (isHandled || isInterrupted || isUnseenMessage || uncertainActivations.length === 0)
      return { accepted: isAccepted, refusals };
    // If this message completed an uncertain activation, the message may belong to that one, so no activation is confirmed.
    const liveUncertainActivations = uncertainActivations.filter((activation) => this.#liveActivations.has(activation));
    const distinctActivations = this.#mergeSamePositions(liveUncertainActivations);
    if (distinctActivations.length !== 1 || liveUncertainActivations.length < uncertainActivations.length)
      return { accepted: isAccepted, refusals };
    return { accepted: isAccepted, refusals, confirm: () => this.#confirm(distinctActivations[0]!) };
  }

  onActorEnded(name: string): void {
    const endedBindings = new Set<Binding>();
    for (const pattern of this.#numberedPatterns) {
      const n = matchName(pattern, name);
      if (n === undefined) continue;
      this.#uncertainty?.seenBindings.add(n);
      endedBindings.add(n);
    }
    // Each activation ends once, although `epoch-2` is epoch-N and epoch-N+1 for different N.
    for (const activation of new Set(
      [...endedBindings].flatMap((n) => [...(this.#activationsByNumber.get(n) ?? [])]),
    )) {
      const cuts = activation.cuts.filter((cut) => !endedBindings.has(cut.n));
      if (cuts.length > 0) this.#setCuts(activation, cuts);
      else this.#endActivation(activation, this.#isCompleteAt(activation, endedBindings) ? 'completed' : 'interrupted');
    }
  }

  #isCompleteAt({ cuts }: Activation, numbers: ReadonlySet<Binding>): boolean {
    return [...numbers].some((n) => {
      const matchingCuts = cuts.filter((cut) => cut.n === n);
      return matchingCuts.length > 0 && matchingCuts.every((cut) => cut.term === this.contract.terms.empty);
    });
  }

  /** Must be called after a loss of records: live activations may have advanced or ended, and others may have begun. */
  onRecordsLost(): void {
    for (const activation of [...this.#liveActivations]) this.#endActivation(activation, 'interrupted');
    const { terms, start } = this.contract;
    const unknownPosition: Cut = { n: 'free', term: terms.firstRemainder(start) };
    const hasNumbers = isNumberedContract(this.contract);
    this.#uncertainty = { cuts: hasNumbers ? [unknownPosition] : [], seenBindings: new Set() };
    this.#trackUncertain(hasNumbers ? unnumberedCuts(this.contract) : [unknownPosition]);
  }

  /** The next messages of live activations, preferably of those with these numbers, and the first messages of the diagram. */
  expectedMessages(numbers: readonly Binding[]): ExpectedMessage[] {
    const affectedActivations = this.#affectedActivations(numbers);
    const candidateActivations = (
      affectedActivations.length > 0 ? affectedActivations : [...this.#liveActivations]
    ).slice(0, maxShown);
    return expectedAt(this.contract, [...candidateActivations.flatMap((activation) => activation.cuts), this.#start]);
  }

  get #start(): Cut {
    return { n: 'free', term: this.contract.start };
  }

  #affectedActivations(numbers: readonly Binding[]): readonly Activation[] {
    if (this.#liveActivations.size === 0) return noActivations;
    const openActivations = this.#openActivations();
    if (openActivations.length === 0 && numbers.length === 1 && numbers[0] !== 'free') {
      const bound = this.#activationsByNumber.get(numbers[0]!);
      return bound === undefined ? noActivations : [...bound];
    }
    const bound = numbers.includes('free')
      ? [...this.#liveActivations]
      : numbers.flatMap((n) => [...(this.#activationsByNumber.get(n) ?? [])]);
    if (openActivations.length === 0) return [...new Set(bound)];
    return [...new Set(bound.filter((activation) => !openActivations.includes(activation))), ...openActivations];
  }

  /** Oldest first, because a number determines N of one activation only. */
  #openActivations(): readonly Activation[] {
    const freeActivations = this.#activationsByNumber.get('free');
    if (freeActivations === undefined) return noActivations;
    return freeActivations.size === 1
      ? [...freeActivations]
      : [...freeActivations].sort((a, b) => a.startedAt - b.startedAt);
  }

  #openingCuts(occurrence: Occurrence): readonly Cut[] {
    const { outcome, cuts } = advance(this.contract, [this.#start], occurrence);
    return outcome === 'accepted' ? cuts : [];
  }

  #beginActivation(occurrence: Occurrence, message: Message, isUncertain: boolean): Activation | undefined {
    const cuts = this.#openingCuts(occurrence);
    if (cuts.length === 0) return undefined;
    this.#counts.started++;
    const activation: Activation = { cuts: [], startedAt: message.seq, lastAccepted: message.seq, isUncertain };
    this.#liveActivations.add(activation);
    this.#acceptMessage(activation, cuts, message);
    return activation;
  }

  /** The activation counts as started only when it becomes certain. */
  #trackUncertain(cuts: readonly Cut[]): void {
    if (cuts.length === 0) return;
    const activation: Activation = { cuts: [], startedAt: 0, lastAccepted: 0, isUncertain: true };
    this.#liveActivations.add(activation);
    this.#setCuts(activation, cuts);
  }

  /** Offers a message to activations whose number has not occurred since a loss. */
  #offerToUnseenActivations(occurrence: Occurrence): boolean {
    const { cuts, seenBindings } = this.#uncertainty!;
    const numbers = [...occurrence.symbolsByNumber.keys()].filter((n) => !seenBindings.has(n));
    for (const n of numbers) this.#trackUncertain(cuts.map(({ term }) => ({ n, term })));
    const plainAdvance =
      occurrence.plainSymbols === undefined ? undefined : advance(this.contract, cuts, occurrence, { mayBind: false });
    const isInterruption = occurrence.interruptions.includes('free') && plainAdvance?.outcome !== 'accepted';
    for (const n of numbers) seenBindings.add(n);
    for (const n of occurrence.interruptions) seenBindings.add(n);
    this.#uncertainty = { cuts: isInterruption ? [] : (plainAdvance?.cuts ?? cuts), seenBindings };
    return plainAdvance?.outcome === 'accepted';
  }

  /** Merges activations at the same position, if possible into one whose beginning was recorded. */
  #mergeSamePositions(activations: readonly Activation[]): readonly Activation[] {
    const activationByPosition = new Map<string, Activation>();
    for (const activation of activations) {
      const position = positionKey(activation);
      const previousActivation = activationByPosition.get(position);
      const earliestActivation =
        previousActivation === undefined || previousActivation.startedAt < activation.startedAt
          ? activation
          : previousActivation;
      const replacedActivation = earliestActivation === activation ? previousActivation : activation;
      if (replacedActivation !== undefined) this.#endActivation(replacedActivation, 'interrupted');
      activationByPosition.set(position, earliestActivation);
    }
    return [...activationByPosition.values()];
  }

  #confirm(activation: Activation): void {
    activation.isUncertain = false;
    if (activation.startedAt > 0) return;
    activation.startedAt = activation.lastAccepted;
    this.#counts.started++;
  }

  #acceptMessage(activation: Activation, cuts: readonly Cut[], message: Message): void {
    activation.lastAccepted = message.seq;
    this.#setCuts(activation, cuts);
  }

  #catchUp(activation: Activation, occurrence: Occurrence, message: Message): boolean {
    const { outcome, cuts } = advance(this.contract, activation.cuts, occurrence, { mayHaveGaps: true });
    if (outcome !== 'accepted') return false;
    this.#acceptMessage(activation, cuts, message);
    return true;
  }

  #setCuts(activation: Activation, cuts: readonly Cut[]): void {
    const [previousCut] = activation.cuts;
    if (activation.cuts.length === 1 && cuts.length === 1 && previousCut!.n === cuts[0]!.n) activation.cuts = cuts;
    else {
      this.#removeActivation(activation);
      activation.cuts = cuts;
      this.#index(activation);
    }
    if (cuts.every((cut) => cut.term === this.contract.terms.empty)) this.#endActivation(activation, 'completed');
  }

  #index(activation: Activation): void {
    for (const { n } of activation.cuts) {
      const peers = this.#activationsByNumber.get(n);
      if (peers === undefined) this.#activationsByNumber.set(n, new Set([activation]));
      else peers.add(activation);
    }
  }

  #endActivation(activation: Activation, ending: 'completed' | 'interrupted'): void {
    // An activation that was never certain does not count as started.
    if (activation.startedAt > 0) this.#counts[ending]++;
    this.#removeActivation(activation);
    this.#liveActivations.delete(activation);
  }

  #removeActivation(activation: Activation): void {
    for (const { n } of activation.cuts) {
      const peers = this.#activationsByNumber.get(n);
      peers?.delete(activation);
      if (peers?.size === 0) this.#activationsByNumber.delete(n);
    }
  }

  #refusal(activation: Activation): RefusedMessage {
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
