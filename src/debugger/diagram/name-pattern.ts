/**
 * `epoch-N` matches any epoch, and N is the same number in an entire activation, so `epoch-N+1` matches the next epoch. A letter after the number
 * distinguishes series that count separately: `epoch-1b` follows `epoch-0b`. `api-server-*` matches any actor of a series, independent of N.
 */

/**
 * The value of N for a name: a number with the letter of its series, if any (`3`, `0b`); `free` if the name has no N.
 */
export type Binding = 'free' | `${number}${string}`;

export interface NamePattern {
  /** As written: `epoch-N+1`. */
  readonly text: string;
  readonly hasNumber: boolean;
  readonly regexp: RegExp | undefined;
  readonly offsets: readonly number[];
}

const variable = /-N(?:\+(\d+))?(?=\/|$)/g;
const seriesPattern = /^[a-z][a-z0-9-]*-\*$/;
const misplacedVariable = /(?:^|[-/+])N(?:$|[-/+])/;
const numberAndSeries = /^(0|[1-9]\d*)([a-z]?)$/;

/** @returns `undefined` if N has no meaning at its position (`epoch-N-1`, `N/x`) */
export function namePattern(text: string): NamePattern | undefined {
  if (seriesPattern.test(text)) {
    return { text, hasNumber: false, regexp: new RegExp(`^${text.slice(0, -1)}(?:0|[1-9]\\d*)$`), offsets: [] };
  }
  const offsets = [...text.matchAll(variable)].map((match) => Number(match[1] ?? 0));
  if (misplacedVariable.test(text.replaceAll(variable, ''))) return undefined;
  if (offsets.length === 0) return { text, hasNumber: false, regexp: undefined, offsets };
  const source = text
    .split(/(-N(?:\+\d+)?(?=\/|$))/)
    .map((segment) =>
      /^-N(?:\+\d+)?$/.test(segment) ? '-((?:0|[1-9]\\d*)[a-z]?)' : segment.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    )
    .join('');
  return { text, hasNumber: true, regexp: new RegExp(`^${source}$`), offsets };
}

export const anyNamePattern: NamePattern = { text: '*', hasNumber: false, regexp: /^/, offsets: [] };

/** N is never negative. */
export function matchName(pattern: NamePattern, name: string): Binding | undefined {
  if (pattern.regexp === undefined) return pattern.text === name ? 'free' : undefined;
  const placeholders = pattern.regexp.exec(name);
  if (placeholders === null) return undefined;
  return pattern.offsets.map((offset, i) => shifted(placeholders[i + 1]!, -offset)).reduce(joinBindings, 'free');
}

/** @returns `undefined` if the bindings contradict each other */
export function joinBindings(a: Binding | undefined, b: Binding | undefined): Binding | undefined {
  if (a === 'free') return b;
  return b === 'free' || a === b ? a : undefined;
}

export function nameAt(pattern: NamePattern, n: Binding): string {
  if (n === 'free') return pattern.text;
  return pattern.text.replaceAll(variable, (_, offset: string | undefined) => `-${shifted(n, Number(offset ?? 0))}`);
}

function shifted(placeholder: string, offset: number): Binding | undefined {
  const [, number, series = ''] = numberAndSeries.exec(placeholder) ?? [];
  const n = Number(number) + offset;
  return n < 0 ? undefined : `${n}${series}`;
}
