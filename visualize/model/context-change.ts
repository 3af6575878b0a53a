import type { ContextChange } from '../../src/runtime/trace/trace.ts';
import { changesOf as changesBetween, valueAt } from '../../src/runtime/trace/trace-state.ts';
import type { Moment } from './moment.ts';

/** Changes without the initial context. Of a replaced list, only changed entries and fields. */
export function changesOf({ before, changes }: Pick<Moment, 'before' | 'changes'>): ContextChange[] {
  if (before?.context === undefined) return [];
  const fine = changes.flatMap((change) =>
    'value' in change ? finer(change, valueAt(before.context, change.path)) : [change],
  );
  // If several steps change one field, the last change is shown.
  return [...new Map(fine.map((change) => [change.path, change])).values()];
}

function finer({ path, value }: ContextChange, before: unknown): ContextChange[] {
  if (Array.isArray(value) && Array.isArray(before) && value.length === before.length) {
    return value.flatMap((entry, i) => finer({ path: `${path}/${i}`, value: entry }, before[i]));
  }
  if (isObject(value) && isObject(before)) {
    return changesBetween(before, value).flatMap((change) => {
      const whole = { ...change, path: `${path}${change.path}` };
      // Traces record lists completely, even if they are equal.
      if (!('value' in change)) return [whole];
      const old = valueAt(before, change.path);
      return isObject(old) || Array.isArray(old) ? finer(whole, old) : [whole];
    });
  }
  return JSON.stringify(value) === JSON.stringify(before) ? [] : [{ path, value }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Maximum characters of a value in one line. */
const shownChars = 60;
/** Number of common characters that are shown before the first difference. */
const commonChars = 12;

/** Two values as lines, cut so that the first difference is visible. */
export function shortPair(before: unknown, after: unknown): [string, string] {
  const texts: [string, string] = [textOf(before), textOf(after)];
  let same = 0;
  while (same < texts[0].length && texts[0][same] === texts[1][same]) same++;
  const longest = Math.max(texts[0].length, texts[1].length);
  // A short value is shown from its beginning.
  const from = longest <= shownChars ? 0 : Math.max(0, same - commonChars);
  return [cut(texts[0], from), cut(texts[1], from)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
}

function cut(text: string, from: number): string {
  const begin = from === 0 ? '' : '…';
  const rest = text.slice(from);
  const room = shownChars - begin.length;
  return `${begin}${rest.length > room ? `${rest.slice(0, room - 1)}…` : rest}`;
}
