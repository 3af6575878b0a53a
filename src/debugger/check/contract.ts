import type { Diagram } from '../diagram/diagram.ts';
import { type Binding, joinBindings, matchName, type NamePattern, nameAt } from '../diagram/name-pattern.ts';
import { nextArrows, type Term, TermPool } from '../diagram/term.ts';
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
  /** Sets of symbols that messages have been, by their numbers. */
  readonly symbolSets: Map<string, ReadonlySet<number>>;
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
  return { diagram, terms, start, alphabet, symbolSets: new Map() };
}

/** What N must be for a message to have these ends; undefined when it has not. */
export function bindEnds(ends: { from: NamePattern; to: NamePattern }, message: Message): Binding | undefined {
  const from = matchName(ends.from, message.from);
  if (from === undefined || message.to === unknownParent) return from;
  return joinBindings(from, matchName(ends.to, message.to));
}

/** What a message is to a diagram: where it may occur in it. Messages with the same ends and type share one. */
export interface Occurrence {
  /** The ways in which it is in the alphabet. */
  readonly steps: readonly Step[];
  /** What N is in the activations that it may interrupt. */
  readonly interruptions: readonly Binding[];
  /** Both of it: what N is in the activations that may be concerned. */
  readonly numbers: readonly Binding[];
  /** The symbols of the steps without a number. */
  readonly plain: ReadonlySet<number> | undefined;
  /** By N: the symbols that need that number; and all that the message is to an activation that has it. */
  readonly numbered: ReadonlyMap<Binding, { readonly alone: ReadonlySet<number>; readonly all: ReadonlySet<number> }>;
}

export function occurrenceOf(
  contract: Contract,
  steps: readonly Step[],
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
    numbers: [...new Set([...numbers, ...interruptions])],
    plain: numbers.includes('free') ? symbolsAt('free') : undefined,
    numbered: new Map(
      numbers.filter((n) => n !== 'free').map((n) => [n, { alone: symbolsAt(n), all: symbolsAt(n, 'free') }]),
    ),
  };
}

/** The same set for the same symbols: derivatives are remembered by it. */
function symbolSet({ symbolSets }: Contract, symbols: readonly number[]): ReadonlySet<number> {
  const key = [...symbols].sort((a, b) => a - b).join(' ');
  const known = symbolSets.get(key) ?? new Set(symbols);
  symbolSets.set(key, known);
  return known;
}

/** How a message changes an activation's cuts. */
export interface Advance {
  /**
   * `accepted`: some cut goes on with it. `outside`: it is in no cut's alphabet. `refused`: it is in the alphabet and
   * not allowed; then `cuts` is empty.
   */
  readonly outcome: 'accepted' | 'outside' | 'refused';
  readonly cuts: readonly Cut[];
}

export interface AdvanceOptions {
  /** Allow messages before it to have been missed. */
  skipping?: boolean;
  /** Whether the message may be what fixes N. */
  mayBind?: boolean;
}

/**
 * Moves each cut over a message. A cut whose N is fixed knows its alphabet; one whose N is open is concerned by a numbered
 * message only when that is the next, and is bound by it.
 */
export function advance(
  contract: Contract,
  cuts: readonly Cut[],
  { plain, numbered }: Occurrence,
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
    if (cut.term === terms.empty) {
      next.push(cut);
      continue;
    }
    const known = cut.n === 'free' ? plain : (numbered.get(cut.n)?.all ?? plain);
    let moved = known !== undefined && derive(cut.term, cut.n, known);
    if (cut.n === 'free' && mayBind) {
      for (const [n, { alone }] of numbered) if (derive(cut.term, n, alone)) moved = true;
    }
    if (moved) continue;
    if (known === undefined) next.push(cut);
    else died = true;
  }
  const distinct = distinctCuts(next);
  if (accepted) return { outcome: 'accepted', cuts: distinct };
  return { outcome: died && distinct.length === 0 ? 'refused' : 'outside', cuts: distinct };
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

function distinctCuts(cuts: readonly Cut[]): readonly Cut[] {
  if (cuts.length < 2) return cuts;
  return [...new Map(cuts.map((cut) => [`${cut.n} ${cut.term.id}`, cut])).values()];
}
