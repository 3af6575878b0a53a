/** The texts of marks, and the conditions of their rules (`machines/timeline.ts`). */
import type { MarkRule, StepRule } from '../../../machines/timeline.ts';

type Fields = Readonly<Record<string, unknown>>;

const maxTextLength = 300;

export function matchesConditions({ when = {}, above = {} }: Partial<MarkRule>, fields: Fields): boolean {
  return (
    Object.entries(when).every(([path, value]) => fieldAt(fields, path) === value) &&
    Object.entries(above).every(([path, limit]) => Number(fieldAt(fields, path)) > limit)
  );
}

export function stepOf(steps: readonly StepRule[], fields: Fields, current: string | undefined): StepRule | undefined {
  return steps.find(
    (rule) =>
      rule.event === fields.type &&
      matchesConditions(rule, fields) &&
      (rule.during === undefined || (current !== undefined && rule.during.includes(current))),
  );
}

export function fillTemplate(template: string, fields: Fields): string {
  const text = template.replaceAll(/\{([^{}:]+)(?::([^{}]+))?\}/g, (_, paths: string, countedNoun?: string) => {
    const value = paths
      .split('|')
      .map((path) => fieldAt(fields, path))
      .find((value) => value !== undefined && value !== null);
    if (countedNoun === undefined) return valueText(value);
    const count = Array.isArray(value) ? value.length : 0;
    return `${count} ${countedNoun}${count === 1 ? '' : 's'}`;
  });
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
}

/** @param path such as `a.b.0` */
export function fieldAt(fields: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Fields)[key] : undefined,
      fields,
    );
}

function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'unknown';
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
