import type { Diagram } from './diagram/diagram.ts';
import { type Binding, joinBindings, matchName, type NamePattern, nameAt } from './diagram/name-pattern.ts';
import { nextArrows, type Term, TermPool } from './diagram/term.ts';
import { type Message, unknownParent } from './message.ts';

/** What arrows with the same ends and the same type have in common. */
export interface MessageSymbol {
  readonly from: NamePattern;
  readonly to: NamePattern;
  readonly type: string;
  /** Lines of the arrows. */
  readonly lines: readonly number[];
}

/** A diagram made ready for checking. */
export interface Contract {
  readonly diagram: Diagram;
  readonly terms: TermPool;
  /** Where an activation begins. */
  readonly start: Term;
  /** The alphabet: every message that the diagram speaks about. */
  readonly alphabet: readonly MessageSymbol[];
}

/** A way in which a message is one of the alphabet's: which symbol, and what N is then. */
export interface Step {
  readonly symbol: number;
  readonly n: Binding;
}

/** Where an activation may stand: what may still follow, and what N is. */
export interface Cut {
  readonly n: Binding;
  readonly term: Term;
}

/** An arrow that a reader of a departure should look at; names carry their numbers as far as N is known. */
export interface ExpectedMessage {
  readonly file: string;
  readonly line: number;
  readonly from: string;
  readonly to: string;
  readonly type: string;
}

export function contractOf(diagram: Diagram): Contract {
  const terms = new TermPool();
  const indexOf = new Map<string, number>();
  const alphabet: (MessageSymbol & { lines: number[] })[] = [];
  const start = terms.fromFragment(diagram.body, ({ from, to, type, line }) => {
    const key = `${from.text} ${to.text} ${type}`;
    const known = indexOf.get(key);
    const symbol = known ?? alphabet.push({ from, to, type, lines: [] }) - 1;
    indexOf.set(key, symbol);
    alphabet[symbol]!.lines.push(line);
    return symbol;
  });
  return { diagram, terms, start, alphabet };
}

/** What N must be for a message to have these ends; undefined when it has not. */
export function bindEnds(ends: { from: NamePattern; to: NamePattern }, message: Message): Binding | undefined {
  const from = matchName(ends.from, message.from);
  if (from === undefined || message.to === unknownParent) return from;
  return joinBindings(from, matchName(ends.to, message.to));
}

/** How a message changes an activation's cuts. */
export interface Advance {
  /**
   * `accepted`: some cut goes on with it. `unconcerned`: it is in no cut's alphabet. `refused`: it is in the alphabet and
   * not allowed; then `cuts` is empty.
   */
  readonly outcome: 'accepted' | 'unconcerned' | 'refused';
  readonly cuts: readonly Cut[];
}

export interface AdvanceOptions {
  /** Allow messages before it to have been missed. */
  skipping?: boolean;
  /** Whether the message may be what fixes N. */
  mayBind?: boolean;
}

/**
 * Moves each cut over a message, which is all of `steps`. A cut whose N is fixed knows its alphabet; one whose N is open
 * is concerned by a numbered message only when that is the next, and is bound by it.
 */
export function advance(
  contract: Contract,
  cuts: readonly Cut[],
  steps: readonly Step[],
  options: AdvanceOptions = {},
): Advance {
  const { skipping = false, mayBind = true } = options;
  const { terms } = contract;
  const next: Cut[] = [];
  let accepted = false;
  let died = false;
  const derive = (term: Term, n: Binding, symbols: ReadonlySet<number>): boolean => {
    const left = skipping ? terms.afterSkipping(term, symbols) : terms.after(term, symbols);
    for (const rest of left) next.push({ n, term: rest });
    accepted ||= left.size > 0;
    return left.size > 0;
  };
  for (const cut of cuts) {
    // A completed reading has no alphabet any more.
    const offered = cut.term === terms.empty ? [] : steps;
    if (cut.n !== 'free') {
      const symbols = symbolsOf(offered.filter((step) => step.n === 'free' || step.n === cut.n));
      if (symbols.size === 0) next.push(cut);
      else if (!derive(cut.term, cut.n, symbols)) died = true;
      continue;
    }
    const plain = symbolsOf(offered.filter((step) => step.n === 'free'));
    let moved = plain.size > 0 && derive(cut.term, 'free', plain);
    if (mayBind) {
      for (const n of new Set(offered.map((step) => step.n))) {
        if (n === 'free') continue;
        if (derive(cut.term, n, symbolsOf(offered.filter((step) => step.n === n)))) moved = true;
      }
    }
    if (moved) continue;
    if (plain.size === 0) next.push(cut);
    else died = true;
  }
  const distinct = distinctCuts(next);
  if (accepted) return { outcome: 'accepted', cuts: distinct };
  return { outcome: died && distinct.length === 0 ? 'refused' : 'unconcerned', cuts: distinct };
}

/** The messages that may be next at these cuts, by line. */
export function expectedAt(contract: Contract, cuts: readonly Cut[]): ExpectedMessage[] {
  const expected = new Map<string, ExpectedMessage>();
  for (const { n, term } of cuts) {
    for (const { symbol, line } of nextArrows(term)) {
      const message = expectedMessage(contract, symbol, line, n);
      expected.set(`${line} ${message.from} ${message.to}`, message);
    }
  }
  return [...expected.values()].sort((a, b) => a.line - b.line);
}

/** An arrow with its names filled in. */
export function expectedMessage(contract: Contract, symbol: number, line: number, n: Binding): ExpectedMessage {
  const { from, to, type } = contract.alphabet[symbol]!;
  return { file: contract.diagram.file, line, from: nameAt(from, n), to: nameAt(to, n), type };
}

function symbolsOf(steps: readonly Step[]): ReadonlySet<number> {
  return new Set(steps.map((step) => step.symbol));
}

function distinctCuts(cuts: readonly Cut[]): readonly Cut[] {
  if (cuts.length < 2) return cuts;
  return [...new Map(cuts.map((cut) => [`${cut.n} ${cut.term.id}`, cut])).values()];
}
