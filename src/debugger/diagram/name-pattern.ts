/**
 * Patterns of actor names in diagrams. `supervisor` matches that actor; `epoch-N` matches any epoch, and N is the same
 * number in the whole activation of a diagram, so `epoch-N+1` matches the next epoch. The same holds for paths. A letter
 * after the number distinguishes series that count separately: `epoch-1b` follows `epoch-0b`. `api-server-*` matches any
 * actor of a series, independent of N: for an actor that exchanges messages with many actors that have numbers of their
 * own.
 */

/**
 * The value of N for a name: a number with the letter of its series, if any (`3`, `0b`); or `free` if the name has no N.
 */
export type Binding = 'free' | `${number}${string}`;

export interface NamePattern {
  /** As written: `epoch-N+1`. */
  readonly text: string;
  /** Whether the pattern contains N. */
  readonly numbered: boolean;
  readonly regexp: RegExp | undefined;
  /** The number added to N at each of its places, in order. */
  readonly offsets: readonly number[];
}

const variable = /-N(?:\+(\d+))?(?=\/|$)/g;
const anyOfSeries = /^[a-z][a-z0-9-]*-\*$/;
const misplacedVariable = /(?:^|[-/+])N(?:$|[-/+])/;
const numberAndSeries = /^(0|[1-9]\d*)([a-z]?)$/;

/** Compiles a name. @returns `undefined` if N is at a place where it has no meaning (`epoch-N-1`, `N/x`) */
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

/** The N for which the pattern matches this name; `undefined` if it cannot match. N is never negative. */
export function matchName(pattern: NamePattern, name: string): Binding | undefined {
  if (pattern.regexp === undefined) return pattern.text === name ? 'free' : undefined;
  const places = pattern.regexp.exec(name);
  if (places === null) return undefined;
  return pattern.offsets.map((offset, i) => shifted(places[i + 1]!, -offset)).reduce(joinBindings, 'free');
}

/** Combines two bindings; `undefined` if they contradict each other. */
export function joinBindings(a: Binding | undefined, b: Binding | undefined): Binding | undefined {
  if (a === 'free') return b;
  return b === 'free' || a === b ? a : undefined;
}

/** The pattern with N substituted; as written while N is not known. */
export function nameAt(pattern: NamePattern, n: Binding): string {
  if (n === 'free') return pattern.text;
  return pattern.text.replaceAll(variable, (_, offset: string | undefined) => `-${shifted(n, Number(offset ?? 0))}`);
}

function shifted(place: string, by: number): Binding | undefined {
  const [, number, series = ''] = numberAndSeries.exec(place) ?? [];
  const n = Number(number) + by;
  return n < 0 ? undefined : `${n}${series}`;
}
