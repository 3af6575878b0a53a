/** The words of a mark, and whether there is one, as its rule has it (`machines/timeline.ts`). Runs in a browser. */
import type { MarkRule, StepRule } from '../../../machines/timeline.ts';

type Fields = Readonly<Record<string, unknown>>;

const longestText = 300;

/** Whether a rule's conditions hold. */
export function isMeant({ when = {}, above = {} }: Partial<MarkRule>, fields: Fields): boolean {
  return (
    Object.entries(when).every(([path, value]) => fieldAt(fields, path) === value) &&
    Object.entries(above).every(([path, least]) => Number(fieldAt(fields, path)) > least)
  );
}

/** The rule that an event is meant by, if it begins or ends a step. @param current the step that goes on */
export function stepOf(steps: readonly StepRule[], fields: Fields, current: string | undefined): StepRule | undefined {
  return steps.find(
    (rule) =>
      rule.event === fields.type &&
      isMeant(rule, fields) &&
      (rule.during === undefined || (current !== undefined && rule.during.includes(current))),
  );
}

/** A text with what fields hold in the places of their names. */
export function filled(template: string, fields: Fields): string {
  const text = template.replaceAll(/\{([^{}:]+)(?::([^{}]+))?\}/g, (_, paths: string, counted?: string) => {
    const value = paths
      .split('|')
      .map((path) => fieldAt(fields, path))
      .find((found) => found !== undefined && found !== null);
    if (counted === undefined) return worded(value);
    const count = Array.isArray(value) ? value.length : 0;
    return `${count} ${counted}${count === 1 ? '' : 's'}`;
  });
  return text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;
}

/** `a.b.0` of what may be anything. */
export function fieldAt(fields: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Fields)[key] : undefined,
      fields,
    );
}

function worded(value: unknown): string {
  if (value === undefined || value === null) return 'unknown';
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
