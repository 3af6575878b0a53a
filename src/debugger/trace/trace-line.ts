import type { TraceLine, TraceRecord } from '../../runtime/trace.ts';

type Fields = Readonly<Record<string, 'string' | 'number' | 'string?' | 'event' | 'list'>>;

const stamp: Fields = { seq: 'number', t: 'number' };
const formOf: Readonly<Record<TraceLine['kind'], Fields>> = {
  header: {
    version: 'number',
    program: 'string',
    pid: 'number',
    startedAt: 'string',
    level: 'string',
    machines: 'list',
  },
  spawn: { ...stamp, actor: 'string', parent: 'string?', machine: 'string?' },
  event: { ...stamp, from: 'string', to: 'string', event: 'event' },
  'timer-started': { ...stamp, actor: 'string', timer: 'string', state: 'string', ms: 'number' },
  timer: { ...stamp, actor: 'string', timer: 'string' },
  transition: { ...stamp, actor: 'string', from: 'string', to: 'string', on: 'string' },
  step: { ...stamp, actor: 'string', on: 'string' },
  effect: { ...stamp, actor: 'string', effect: 'string' },
  stop: { ...stamp, actor: 'string', status: 'string', error: 'string?' },
  log: { ...stamp, actor: 'string', level: 'string', text: 'string' },
};
const checks = new Map(Object.entries(formOf).map(([kind, fields]) => [kind, Object.entries(fields)]));
/** All but the header. */
export const recordKinds = Object.keys(formOf).filter((kind) => kind !== 'header') as TraceRecord['kind'][];
const endings: ReadonlySet<unknown> = new Set(['done', 'stopped', 'error']);

/** What is wrong with a line that was not written to its end. */
export const notJson = 'the line is not JSON';

/** A line of a trace; or, in words, why it is none. */
export function parseTraceLine(text: string): TraceLine | string {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return notJson;
  }
  if (typeof line !== 'object' || line === null) return 'the line is not a JSON object';
  const record = line as Record<string, unknown>;
  const fields = checks.get(String(record.kind));
  if (fields === undefined) return `no record has the kind ${JSON.stringify(record.kind)}`;
  for (const [field, form] of fields) {
    if (!hasForm(record[field], form)) {
      return `field '${field}' of the ${record.kind} record is ${JSON.stringify(record[field]) ?? 'missing'}`;
    }
  }
  if (record.kind === 'stop' && !endings.has(record.status)) {
    return `field 'status' of the stop record is ${JSON.stringify(record.status)}`;
  }
  return line as TraceLine;
}

function hasForm(value: unknown, form: Fields[string]): boolean {
  if (form === 'string?') return value === undefined || typeof value === 'string';
  if (form === 'list') return Array.isArray(value);
  if (form !== 'event') return typeof value === form;
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}
