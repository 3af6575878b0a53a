import type { Binding } from '../diagram/name-pattern.ts';
import type { Term } from '../diagram/term.ts';
import type { Contract, Cut, Occurrence } from './contract.ts';

/** A diagram that is under way. */
export interface Activation {
  cuts: readonly Cut[];
  /** 0: it began before a loss of records, and is doubtful. */
  startedAt: number;
  lastAccepted: number;
  /**
   * Records of the trace were lost: it may be live, at any of its cuts, or not be at all. It takes what it can and refuses
   * nothing, until it alone has a place for a message.
   */
  doubtful: boolean;
}

/** What is not known after a loss of records. */
export interface Doubt {
  /** Where an activation may be whose number has not been seen since; none when it cannot be live. */
  readonly cuts: readonly Cut[];
  /** Numbers that have been seen since: their activations are followed one by one. */
  readonly seen: Set<Binding>;
}

/** Identity: two activations of a diagram at the same place go on alike. */
export function placeOf({ cuts }: Activation): string {
  return cuts.map(({ n, term }) => `${n} ${term.id}`).join();
}

/** Whether a message that nothing takes ends an activation without fault. */
export function isInterrupted({ cuts }: Activation, { interruptions }: Occurrence): boolean {
  return cuts.some((cut) => interruptions.some((n) => n === 'free' || cut.n === 'free' || n === cut.n));
}

export function isNumbered({ alphabet }: Contract): boolean {
  return alphabet.some(({ from, to }) => from.numbered || to.numbered);
}

/** Where an activation may be whose N is still open: behind messages without a number. */
export function openCuts({ terms, start, alphabet }: Contract): readonly Cut[] {
  const plain = new Set(alphabet.flatMap(({ from, to }, symbol) => (from.numbered || to.numbered ? [] : [symbol])));
  const open = new Set<Term>();
  const look = (term: Term): void => {
    for (const left of terms.after(term, plain)) {
      if (left === terms.empty || open.has(left)) continue;
      open.add(left);
      look(left);
    }
  };
  look(start);
  return [...open].map((term) => ({ n: 'free', term }));
}
