/** Records of a trace that are sent to or received from another program (`links` in `machines/timeline.ts`). */
import type { LinkRule } from '../../../machines/timeline.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { fieldAt } from '../trace/mark-text.ts';

export interface LinkEnd {
  readonly side: 'sends' | 'receives';
  /** The same for both ends of an arrow; several arrows may have the same key. */
  readonly key: string;
  readonly text: string;
  readonly index: number;
  readonly actor: string;
}

export function linkEnds({ machines }: TraceHeader, records: readonly TraceRecord[]): LinkEnd[] {
  const rules = new Map<string, LinkRule[]>();
  for (const rule of machines.flatMap(({ timeline }) => timeline?.links ?? [])) {
    rules.set(rule.event, [...(rules.get(rule.event) ?? []), rule]);
  }
  if (rules.size === 0) return [];
  let identity: string | undefined;
  return records.flatMap((record, index) => {
    if (record.kind !== 'event') return [];
    const fields = { ...record.event, from: record.from, to: record.to, ...(identity !== undefined && { identity }) };
    return (rules.get(record.event.type) ?? []).flatMap((rule): LinkEnd[] => {
      const key = keyOf(rule.key, fields);
      if (key === undefined) return [];
      if (rule.side === 'is') {
        identity = key;
        return [];
      }
      return [{ side: rule.side, key, text: rule.text ?? rule.event, index, actor: record.from }];
    });
  });
}

function keyOf(template: string, fields: object): string | undefined {
  let isComplete = true;
  const key = template.replaceAll(/\{([^{}]+)\}/g, (_, path: string) => {
    const value = fieldAt(fields, path);
    isComplete &&= (typeof value === 'string' && value !== '') || typeof value === 'number';
    return String(value);
  });
  return isComplete ? key : undefined;
}
