import type { TraceRecord } from '../runtime/trace.ts';

const longestPayload = 120;

/** A record in one line for people: its number, milliseconds since the start, and what happened. */
export function formatRecord(record: TraceRecord): string {
  return `${String(record.seq).padStart(7)} ${record.t.toFixed(3).padStart(13)}  ${happening(record)}`;
}

function happening(record: TraceRecord): string {
  switch (record.kind) {
    case 'spawn': {
      const machine = record.machine === undefined ? '' : ` (machine ${record.machine})`;
      return `${record.parent ?? 'outside'} → ${record.actor}: spawn${machine}`;
    }
    case 'event': {
      const { type, ...payload } = record.event;
      return `${record.from} → ${record.to}: ${type}${shortJson(payload)}`;
    }
    case 'timer-started':
      return `${record.actor}: timer ${record.timer} runs, ${record.ms} ms`;
    case 'timer':
      return `${record.actor}: timer ${record.timer}`;
    case 'transition':
      return `${record.actor}: [${record.from}] → [${record.to}] on ${record.on}`;
    case 'step':
      return `${record.actor}: stays, on ${record.on}${record.change === undefined ? '' : shortJson(record.change)}`;
    case 'log':
      return `${record.actor}: ${record.level}: ${record.text}`;
    case 'effect':
      return `${record.actor}: does ${record.effect}${shortJson(record.params)}`;
    case 'stop':
      return `${record.actor}: ${record.status}${shortJson(record.output)}${record.error === undefined ? '' : ` ${record.error}`}`;
  }
}

function shortJson(value: unknown): string {
  const text = value === undefined ? '{}' : JSON.stringify(value);
  if (text === '{}') return '';
  return text.length > longestPayload ? ` ${text.slice(0, longestPayload)}…` : ` ${text}`;
}
