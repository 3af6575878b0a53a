/** What became of a chart's context at one moment, field by field. */
import type { ContextChange } from '../../src/runtime/trace/trace.ts';
import { changesOf as changesBetween, valueAt } from '../../src/runtime/trace/trace-state.ts';
import type { Moment } from './moment.ts';

/**
 * Changes as a person wants to see them: the first context is not one, and of a list that was replaced only the entries
 * and fields that are others now.
 */
export function changesOf({ before, changes }: Pick<Moment, 'before' | 'changes'>): ContextChange[] {
  if (before?.context === undefined) return [];
  const fine = changes.flatMap((change) =>
    'value' in change ? finer(change, valueAt(before.context, change.path)) : [change],
  );
  // Several steps may change one field: the last one stands.
  return [...new Map(fine.map((change) => [change.path, change])).values()];
}

function finer({ path, value }: ContextChange, before: unknown): ContextChange[] {
  if (Array.isArray(value) && Array.isArray(before) && value.length === before.length) {
    return value.flatMap((entry, i) => finer({ path: `${path}/${i}`, value: entry }, before[i]));
  }
  if (isObject(value) && isObject(before)) {
    return changesBetween(before, value).flatMap((change) => {
      const whole = { ...change, path: `${path}${change.path}` };
      // Lists come back as a whole, also those that are the same.
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
