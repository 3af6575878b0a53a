import type { TraceLine, TraceRecord } from '../../runtime/trace/trace.ts';
import { formOf } from './trace-form.ts';

const checks = new Map(Object.entries(formOf).map(([kind, fields]) => [kind, Object.entries(fields)]));
/** All but the header. */
export const recordKinds = Object.keys(formOf).filter((kind) => kind !== 'header') as TraceRecord['kind'][];

/** What is wrong with a line that was not written to its end. */
export const notJson = 'the line is not JSON';

const longestShown = 200;
/** Far more than a program writes (runtime/trace/redact.ts), far less than what no recursion could walk through. */
const deepest = 500;

/** A line of a trace; or, in words, why it is none. */
export function parseTraceLine(text: string): TraceLine | string {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return notJson;
  }
  if (typeof line !== 'object' || line === null) return 'the line is not a JSON object';
  // A bracket of each level at both ends: only long lines are worth a look.
  if (text.length > 2 * deepest && isDeeper(line)) return `the record is nested deeper than ${deepest} levels`;
  const record = line as Record<string, unknown>;
  const fields = checks.get(String(record.kind));
  if (fields === undefined) return `no record has the kind ${cut(JSON.stringify(record.kind) ?? 'undefined')}`;
  for (const [field, isOfForm] of fields) {
    if (!isOfForm(record[field])) return `field '${field}' of the ${record.kind} record is ${shown(record[field])}`;
  }
  return line as TraceLine;
}

/** Level by level: what is looked for is what a recursion could not find. */
function isDeeper(value: object): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    level = level.flatMap((one) =>
      Object.values(one as object).filter((item) => typeof item === 'object' && item !== null),
    );
  }
  return level.length > 0;
}

function shown(value: unknown): string {
  return value === undefined ? 'missing' : cut(JSON.stringify(value));
}

function cut(text: string): string {
  return text.length <= longestShown ? text : `${text.slice(0, longestShown)}…`;
}
