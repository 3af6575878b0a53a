/**
 * The remaining messages of an activation as a term over arrows, and its partial derivatives (Brzozowski 1964, Antimirov 1996). Terms are interned,
 * so equal terms are the same object and sets of alternatives stay small.
 */
import type { Fragment } from './diagram.ts';

export type Term = TermShape & {
  /** Unique within its pool. */
  readonly id: number;
  /** Whether the remaining messages may be omitted (an accepting position). */
  readonly optional: boolean;
};

type TermShape =
  | { readonly op: 'empty' }
  | { readonly op: 'message'; readonly symbol: number; readonly line: number }
  | { readonly op: 'sequence'; readonly first: Term; readonly then: Term }
  | { readonly op: 'alt'; readonly branches: readonly Term[] }
  | { readonly op: 'loop'; readonly body: Term }
  | { readonly op: 'par'; readonly branches: readonly Term[] };

export type SymbolOf = (arrow: Fragment & { kind: 'arrow' }) => number;

export interface NextArrow {
  readonly symbol: number;
  readonly line: number;
}

export class TermPool {
  readonly #internedTerms = new Map<string, Term>();
  /** By the set of symbols; a trace uses few different sets. */
  readonly #derivatives = new WeakMap<ReadonlySet<number>, Map<Term, ReadonlySet<Term>>>();
  readonly empty: Term = this.#intern('empty', { op: 'empty' }, true);

  fromFragment(fragment: Fragment, symbolOf: SymbolOf): Term {
    const term = (innerFragment: Fragment): Term => this.fromFragment(innerFragment, symbolOf);
    switch (fragment.kind) {
      case 'arrow':
        return this.message(symbolOf(fragment), fragment.line);
      case 'sequence':
        return fragment.items
          .map(term)
          .reduceRight((remainingTerm, first) => this.sequence(first, remainingTerm), this.empty);
      case 'alt':
        return this.alt(fragment.branches.map(term));
      case 'opt':
        return this.alt([term(fragment.body), this.empty]);
      case 'loop':
        return this.loop(term(fragment.body));
      case 'par':
        return this.par(fragment.branches.map(term));
    }
  }

  message(symbol: number, line: number): Term {
    return this.#intern(`message ${symbol} ${line}`, { op: 'message', symbol, line }, false);
  }

  sequence(first: Term, then: Term): Term {
    if (first.op === 'empty') return then;
    if (then.op === 'empty') return first;
    if (first.op === 'sequence') return this.sequence(first.first, this.sequence(first.then, then));
    return this.#intern(
      `sequence ${first.id} ${then.id}`,
      { op: 'sequence', first, then },
      first.optional && then.optional,
    );
  }

  alt(terms: readonly Term[]): Term {
    const flatTerms = terms.flatMap((term) => (term.op === 'alt' ? term.branches : [term]));
    const branches = [...new Set(flatTerms)].sort((a, b) => a.id - b.id);
    if (branches.length === 1) return branches[0]!;
    return this.#intern(`alt ${ids(branches)}`, { op: 'alt', branches }, branches.some(isOptional));
  }

  loop(body: Term): Term {
    if (body.op === 'empty' || body.op === 'loop') return body;
    return this.#intern(`loop ${body.id}`, { op: 'loop', body }, true);
  }

  par(terms: readonly Term[]): Term {
    const branches = terms
      .flatMap((term) => (term.op === 'par' ? term.branches : [term]))
      .filter((term) => term.op !== 'empty')
      .sort((a, b) => a.id - b.id);
    if (branches.length === 0) return this.empty;
    if (branches.length === 1) return branches[0]!;
    return this.#intern(`par ${ids(branches)}`, { op: 'par', branches }, branches.every(isOptional));
  }

  /** The possible continuations of a term after any number of its messages was missed. */
  firstRemainder(term: Term): Term {
    switch (term.op) {
      case 'empty':
        return term;
      case 'message':
        return this.alt([term, this.empty]);
      case 'sequence':
        return this.alt([this.sequence(this.firstRemainder(term.first), term.then), this.firstRemainder(term.then)]);
      case 'alt':
        return this.alt(term.branches.map((branch) => this.firstRemainder(branch)));
      case 'loop':
        return this.sequence(this.firstRemainder(term.body), term);
      case 'par':
        return this.par(term.branches.map((branch) => this.firstRemainder(branch)));
    }
  }

  /** The continuations of the term that remain after a message with these symbols; empty if the message is not allowed next. */
  continuationsAfter(term: Term, symbols: ReadonlySet<number>): ReadonlySet<Term> {
    const derivedByTerm = this.#derivatives.get(symbols) ?? new Map<Term, ReadonlySet<Term>>();
    const cachedTerms = derivedByTerm.get(term);
    if (cachedTerms !== undefined) return cachedTerms;
    const derivedTerms = this.#derive(term, symbols);
    this.#derivatives.set(symbols, derivedByTerm.set(term, derivedTerms));
    return derivedTerms;
  }

  #derive(term: Term, symbols: ReadonlySet<number>): ReadonlySet<Term> {
    switch (term.op) {
      case 'empty':
        return new Set();
      case 'message':
        return new Set(symbols.has(term.symbol) ? [this.empty] : []);
      case 'sequence': {
        const firstDerivatives = this.#mapTerms(this.continuationsAfter(term.first, symbols), (remainder) =>
          this.sequence(remainder, term.then),
        );
        return term.first.optional
          ? union([firstDerivatives, this.continuationsAfter(term.then, symbols)])
          : firstDerivatives;
      }
      case 'alt':
        return union(term.branches.map((branch) => this.continuationsAfter(branch, symbols)));
      case 'loop':
        return this.#mapTerms(this.continuationsAfter(term.body, symbols), (remainder) =>
          this.sequence(remainder, term),
        );
      case 'par':
        return this.#deriveParallel(term.branches, (branch) => this.continuationsAfter(branch, symbols));
    }
  }

  /** Like `continuationsAfter`, but any number of messages before this message may have been missed. */
  afterSkipping(term: Term, symbols: ReadonlySet<number>): ReadonlySet<Term> {
    switch (term.op) {
      case 'empty':
      case 'message':
        return this.continuationsAfter(term, symbols);
      case 'sequence':
        return union([
          this.#mapTerms(this.afterSkipping(term.first, symbols), (remainder) => this.sequence(remainder, term.then)),
          this.afterSkipping(term.then, symbols),
        ]);
      case 'alt':
        return union(term.branches.map((branch) => this.afterSkipping(branch, symbols)));
      case 'loop':
        return this.#mapTerms(this.afterSkipping(term.body, symbols), (remainder) => this.sequence(remainder, term));
      case 'par':
        return this.#deriveParallel(term.branches, (branch) => this.afterSkipping(branch, symbols));
    }
  }

  #deriveParallel(branches: readonly Term[], derive: (branch: Term) => ReadonlySet<Term>): ReadonlySet<Term> {
    return union(
      branches.map((branch, i) =>
        this.#mapTerms(derive(branch), (remainder) => this.par([...branches.toSpliced(i, 1), remainder])),
      ),
    );
  }

  #mapTerms(terms: ReadonlySet<Term>, map: (term: Term) => Term): Set<Term> {
    return new Set([...terms].map(map));
  }

  #intern(key: string, shape: TermShape, isOptional: boolean): Term {
    const internedTerm = this.#internedTerms.get(key);
    if (internedTerm !== undefined) return internedTerm;
    const term: Term = { ...shape, id: this.#internedTerms.size, optional: isOptional };
    this.#internedTerms.set(key, term);
    return term;
  }
}

export function nextArrows(term: Term): NextArrow[] {
  switch (term.op) {
    case 'empty':
      return [];
    case 'message':
      return [{ symbol: term.symbol, line: term.line }];
    case 'sequence':
      return [...nextArrows(term.first), ...(term.first.optional ? nextArrows(term.then) : [])];
    case 'alt':
    case 'par':
      return term.branches.flatMap(nextArrows).sort((a, b) => a.line - b.line);
    case 'loop':
      return nextArrows(term.body);
  }
}

function isOptional(term: Term): boolean {
  return term.optional;
}

function ids(terms: readonly Term[]): string {
  return terms.map((term) => term.id).join(' ');
}

function union(sets: readonly ReadonlySet<Term>[]): ReadonlySet<Term> {
  return new Set(sets.flatMap((set) => [...set]));
}
