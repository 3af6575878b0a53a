import type { Binding } from '../diagram/name-pattern.ts';
import type { Term } from '../diagram/term.ts';
import type { Contract, Cut, Occurrence } from './contract.ts';

export interface Activation {
  cuts: readonly Cut[];
  /** 0 if records before the activation are missing. */
  startedAt: number;
  lastAccepted: number;
  /**
   * Set after a loss of records: the activation may be at any of its cuts, or may not exist. It refuses no message until a message arrives that no
   * other activation can accept.
   */
  isUncertain: boolean;
}

export interface Uncertainty {
  /** Possible positions of an activation whose number has not occurred since the loss; empty if there can be none. */
  readonly cuts: readonly Cut[];
  /** Activations of these numbers are tracked individually. */
  readonly seenBindings: Set<Binding>;
}

/** Activations of a diagram with the same key accept the same continuations. */
export function positionKey({ cuts }: Activation): string {
  return cuts.map(({ n, term }) => `${n} ${term.id}`).join();
}

export function isActivationInterrupted({ cuts }: Activation, { interruptions }: Occurrence): boolean {
  return cuts.some((cut) => interruptions.some((n) => n === 'free' || cut.n === 'free' || n === cut.n));
}

export function isNumberedContract({ alphabet }: Contract): boolean {
  return alphabet.some(({ from, to }) => from.hasNumber || to.hasNumber);
}

/** Positions that an activation can reach by messages without a number. */
export function unnumberedCuts({ terms, start, alphabet }: Contract): readonly Cut[] {
  const plainSymbols = new Set(
    alphabet.flatMap(({ from, to }, symbol) => (from.hasNumber || to.hasNumber ? [] : [symbol])),
  );
  const openTerms = new Set<Term>();
  const visit = (term: Term): void => {
    for (const derivedTerm of terms.continuationsAfter(term, plainSymbols)) {
      if (derivedTerm === terms.empty || openTerms.has(derivedTerm)) continue;
      openTerms.add(derivedTerm);
      visit(derivedTerm);
    }
  };
  visit(start);
  return [...openTerms].map((term) => ({ n: 'free', term }));
}
