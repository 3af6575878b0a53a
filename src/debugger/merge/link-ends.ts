/** Where a trace says that something went to another program, or came from one (`machines/timeline.ts`, `links`). Runs in a browser. */
import type { LinkRule } from '../../../machines/timeline.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { fieldAt } from '../trace/mark-text.ts';

/** One end of an arrow between two programs. */
export interface LinkEnd {
  readonly side: 'sends' | 'receives';
  /** Both ends of one arrow have the same; several arrows may. */
  readonly key: string;
  /** What goes along it. */
  readonly text: string;
  /** Place of the record. */
  readonly index: number;
  /** Who did it, as far as the program goes: an arrow begins or ends there. */
  readonly actor: string;
}

/** All ends in a trace, in the order of its records. */
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

/** A key with what fields hold; undefined where one of them holds nothing. */
function keyOf(template: string, fields: object): string | undefined {
  let isWhole = true;
  const key = template.replaceAll(/\{([^{}]+)\}/g, (_, path: string) => {
    const value = fieldAt(fields, path);
    isWhole &&= (typeof value === 'string' && value !== '') || typeof value === 'number';
    return String(value);
  });
  return isWhole ? key : undefined;
}
