import type { Diagram } from '../diagram/diagram.ts';
import { type Binding, joinBindings, matchName, type NamePattern, nameAt } from '../diagram/name-pattern.ts';
import { nextArrows, type Term, TermPool } from '../diagram/term.ts';
import { type Message, unknownParent } from './message.ts';

/** Represents all arrows of a diagram with the same sender, receiver and type. */
export interface MessageSymbol {
  readonly from: NamePattern;
  readonly to: NamePattern;
  readonly type: string;
  readonly lines: readonly number[];
}

export interface Contract {
  readonly diagram: Diagram;
  readonly terms: TermPool;
  readonly start: Term;
  readonly alphabet: readonly MessageSymbol[];
  readonly symbolSets: Map<string, ReadonlySet<number>>;
}

export interface MessageMatch {
  readonly symbol: number;
  readonly n: Binding;
}

/** A position in a diagram: the term of the remaining messages, for one N. */
export interface Cut {
  readonly n: Binding;
  readonly term: Term;
}

/** In the names, N is replaced by its value if that is known. */
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
    const existingSymbol = indexOf.get(key);
    const symbol = existingSymbol ?? alphabet.push({ from, to, type, lines: [] }) - 1;
    indexOf.set(key, symbol);
    alphabet[symbol]!.lines.push(line);
    return symbol;
  });
  return { diagram, terms, start, alphabet, symbolSets: new Map() };
}

/** @returns the N for which the patterns match the sender and the receiver */
export function bindEnds(endPatterns: { from: NamePattern; to: NamePattern }, message: Message): Binding | undefined {
  const from = matchName(endPatterns.from, message.from);
  if (from === undefined || message.to === unknownParent) return from;
  return joinBindings(from, matchName(endPatterns.to, message.to));
}

export interface Occurrence {
  readonly steps: readonly MessageMatch[];
  /** N of the activations that the message may interrupt. */
  readonly interruptions: readonly Binding[];
  readonly bindings: readonly Binding[];
  readonly plainSymbols: ReadonlySet<number> | undefined;
  /** Symbols of the message by N: `numbered` has those that need this N, `all` also those that need no number. */
  readonly symbolsByNumber: ReadonlyMap<
    Binding,
    { readonly numbered: ReadonlySet<number>; readonly all: ReadonlySet<number> }
  >;
}

export function occurrenceOf(
  contract: Contract,
  steps: readonly MessageMatch[],
  interruptions: readonly Binding[],
): Occurrence {
  const symbolsAt = (...numbers: Binding[]): ReadonlySet<number> =>
    symbolSet(
      contract,
      steps.filter(({ n }) => numbers.includes(n)).map(({ symbol }) => symbol),
    );
  const numbers = [...new Set(steps.map(({ n }) => n))];
  return {
    steps,
    interruptions,
    bindings: [...new Set([...numbers, ...interruptions])],
    plainSymbols: numbers.includes('free') ? symbolsAt('free') : undefined,
    symbolsByNumber: new Map(
      numbers.filter((n) => n !== 'free').map((n) => [n, { numbered: symbolsAt(n), all: symbolsAt(n, 'free') }]),
    ),
  };
}

/** Returns the same set for the same symbols, because derivatives are cached by set. */
function symbolSet({ symbolSets }: Contract, symbols: readonly number[]): ReadonlySet<number> {
  const key = [...symbols].sort((a, b) => a - b).join(' ');
  const cachedSet = symbolSets.get(key) ?? new Set(symbols);
  symbolSets.set(key, cachedSet);
  return cachedSet;
}

export interface AdvanceResult {
  /**
   * `accepted`: at least one cut accepts the message. `outside`: no cut has the message in its alphabet. `refused`: the message is in an alphabet and
   * not allowed; `cuts` is empty.
   */
  readonly outcome: 'accepted' | 'outside' | 'refused';
  readonly cuts: readonly Cut[];
}

export interface AdvanceOptions {
  mayHaveGaps?: boolean;
  mayBind?: boolean;
}

/** A cut with an undetermined N is affected by a numbered message only if the cut allows that message next. The message then determines N. */
export function advance(
  contract: Contract,
  cuts: readonly Cut[],
  { plainSymbols, symbolsByNumber }: Occurrence,
  options: AdvanceOptions = {},
): AdvanceResult {
  const { mayHaveGaps = false, mayBind = true } = options;
  const { terms } = contract;
  const nextCuts: Cut[] = [];
  let isAccepted = false;
  let hasRefusedCut = false;
  const derive = (term: Term, n: Binding, symbols: ReadonlySet<number>): boolean => {
    const derivedTerms = mayHaveGaps ? terms.afterSkipping(term, symbols) : terms.continuationsAfter(term, symbols);
    for (const derivedTerm of derivedTerms) nextCuts.push({ n, term: derivedTerm });
    isAccepted ||= derivedTerms.size > 0;
    return derivedTerms.size > 0;
  };
  for (const cut of cuts) {
    // A completed activation has no alphabet.
    if (cut.term === terms.empty) {
      nextCuts.push(cut);
      continue;
    }
    const matchingSymbols = cut.n === 'free' ? plainSymbols : (symbolsByNumber.get(cut.n)?.all ?? plainSymbols);
    let isAdvanced = matchingSymbols !== undefined && derive(cut.term, cut.n, matchingSymbols);
    if (cut.n === 'free' && mayBind) {
      for (const [n, { numbered }] of symbolsByNumber) if (derive(cut.term, n, numbered)) isAdvanced = true;
    }
    if (isAdvanced) continue;
    if (matchingSymbols === undefined) nextCuts.push(cut);
    else hasRefusedCut = true;
  }
  const distinctNextCuts = distinctCuts(nextCuts);
  if (isAccepted) return { outcome: 'accepted', cuts: distinctNextCuts };
  return { outcome: hasRefusedCut && distinctNextCuts.length === 0 ? 'refused' : 'outside', cuts: distinctNextCuts };
}

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

export function expectedMessage(contract: Contract, symbol: number, line: number, n: Binding): ExpectedMessage {
  const { from, to, type } = contract.alphabet[symbol]!;
  return { file: contract.diagram.file, line, from: nameAt(from, n), to: nameAt(to, n), type };
}

function distinctCuts(cuts: readonly Cut[]): readonly Cut[] {
  if (cuts.length < 2) return cuts;
  return [...new Map(cuts.map((cut) => [`${cut.n} ${cut.term.id}`, cut])).values()];
}
