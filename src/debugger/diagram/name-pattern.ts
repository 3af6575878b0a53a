/**
 * Names of actors as diagrams write them. `supervisor` is that actor; `epoch-N` is any epoch, and in one activation of a
 * diagram every N is the same, so `epoch-N+1` is the epoch after it. Paths work likewise: `epoch-N/process`. A letter behind
 * the number tells series apart that count for themselves: after `epoch-0b` comes `epoch-1b`. `api-server-*` is any one of a series,
 * whatever N is: whoever is spoken to by many that are told apart by their own number.
 */

/** What a name says about N: a number with its series' letter, if any (`3`, `0b`); or nothing (the name has no N in it). */
export type Binding = 'free' | `${number}${string}`;

export interface NamePattern {
  /** As written: `epoch-N+1`. */
  readonly text: string;
  /** Whether N occurs in it. */
  readonly numbered: boolean;
  readonly regexp: RegExp | undefined;
  /** What is added to N at each of its places, in order. */
  readonly offsets: readonly number[];
}

const variable = /-N(?:\+(\d+))?(?=\/|$)/g;
const anyOfSeries = /^[a-z][a-z0-9-]*-\*$/;
const misplacedVariable = /(?:^|[-/+])N(?:$|[-/+])/;
const numberAndSeries = /^(0|[1-9]\d*)([a-z]?)$/;

/** Compiles a name. Answers undefined when N stands where it has no meaning (`epoch-N-1`, `N/x`). */
export function namePattern(text: string): NamePattern | undefined {
  if (anyOfSeries.test(text)) {
    return { text, numbered: false, regexp: new RegExp(`^${text.slice(0, -1)}(?:0|[1-9]\\d*)$`), offsets: [] };
  }
  const offsets = [...text.matchAll(variable)].map((match) => Number(match[1] ?? 0));
  if (misplacedVariable.test(text.replaceAll(variable, ''))) return undefined;
  if (offsets.length === 0) return { text, numbered: false, regexp: undefined, offsets };
  const source = text
    .split(/(-N(?:\+\d+)?(?=\/|$))/)
    .map((part) =>
      /^-N(?:\+\d+)?$/.test(part) ? '-((?:0|[1-9]\\d*)[a-z]?)' : part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    )
    .join('');
  return { text, numbered: true, regexp: new RegExp(`^${source}$`), offsets };
}

/** The pattern `*`: any actor. */
export const anyName: NamePattern = { text: '*', numbered: false, regexp: /^/, offsets: [] };

/** What N must be for the pattern to be this name; undefined when it cannot be. N is never negative. */
export function matchName(pattern: NamePattern, name: string): Binding | undefined {
  if (pattern.regexp === undefined) return pattern.text === name ? 'free' : undefined;
  const places = pattern.regexp.exec(name);
  if (places === null) return undefined;
  return pattern.offsets.map((offset, i) => shifted(places[i + 1]!, -offset)).reduce(joinBindings, 'free');
}

/** Both bindings at once; undefined when they contradict each other. */
export function joinBindings(a: Binding | undefined, b: Binding | undefined): Binding | undefined {
  if (a === 'free') return b;
  return b === 'free' || a === b ? a : undefined;
}

/** The name that the pattern stands for; as written while N is not known. */
export function nameAt(pattern: NamePattern, n: Binding): string {
  if (n === 'free') return pattern.text;
  return pattern.text.replaceAll(variable, (_, offset: string | undefined) => `-${shifted(n, Number(offset ?? 0))}`);
}

function shifted(place: string, by: number): Binding | undefined {
  const [, number, series = ''] = numberAndSeries.exec(place) ?? [];
  const n = Number(number) + by;
  return n < 0 ? undefined : `${n}${series}`;
}
