import type { ContextChange } from '../../src/runtime/trace/trace.ts';
import { changesOf as changesBetween, valueAt } from '../../src/runtime/trace/trace-state.ts';
import type { Moment } from './moment.ts';

/** Excludes the initial context. Of a replaced list, only the changed entries and fields are returned. */
export function changesOf({ stateBefore, changes }: Pick<Moment, 'stateBefore' | 'changes'>): ContextChange[] {
  if (stateBefore?.context === undefined) return [];
  const detailedChanges = changes.flatMap((change) =>
    'value' in change ? changesOfFields(change, valueAt(stateBefore.context, change.path)) : [change],
  );
  // If several steps change one field, the last change is shown.
  return [...new Map(detailedChanges.map((change) => [change.path, change])).values()];
}

function changesOfFields({ path, value }: ContextChange, previousContext: unknown): ContextChange[] {
  if (Array.isArray(value) && Array.isArray(previousContext) && value.length === previousContext.length) {
    return value.flatMap((entry, i) => changesOfFields({ path: `${path}/${i}`, value: entry }, previousContext[i]));
  }
  if (isObject(value) && isObject(previousContext)) {
    return changesBetween(previousContext, value).flatMap((change) => {
      const fullChange = { ...change, path: `${path}${change.path}` };
      // Traces record lists completely, even if they are equal.
      if (!('value' in change)) return [fullChange];
      const oldValue = valueAt(previousContext, change.path);
      return isObject(oldValue) || Array.isArray(oldValue) ? changesOfFields(fullChange, oldValue) : [fullChange];
    });
  }
  return JSON.stringify(value) === JSON.stringify(previousContext) ? [] : [{ path, value }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const shownChars = 60;
/** Common characters that are shown before the first difference. */
const commonChars = 12;

/** The lines are cut so that the first difference is visible. */
export function shortenPair(previous: unknown, next: unknown): [string, string] {
  const shortenedTexts: [string, string] = [textOf(previous), textOf(next)];
  let sharedLength = 0;
  while (sharedLength < shortenedTexts[0].length && shortenedTexts[0][sharedLength] === shortenedTexts[1][sharedLength])
    sharedLength++;
  const maxLength = Math.max(shortenedTexts[0].length, shortenedTexts[1].length);
  // A short value is shown from its beginning.
  const from = maxLength <= shownChars ? 0 : Math.max(0, sharedLength - commonChars);
  return [abbreviate(shortenedTexts[0], from), abbreviate(shortenedTexts[1], from)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
}

function abbreviate(text: string, from: number): string {
  const prefix = from === 0 ? '' : '…';
  const remainingText = text.slice(from);
  const maxChars = shownChars - prefix.length;
  return `${prefix}${remainingText.length > maxChars ? `${remainingText.slice(0, maxChars - 1)}…` : remainingText}`;
}
