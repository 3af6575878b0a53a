/** Explains failed requests in the error message of a test. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Events that explain why an Envoy exited. */
const relevantEvents = [
  ...['process.signal', 'process.spawned', 'process.exited', 'process.failed', 'epoch.failed', 'epoch.drain'],
  ...['epochs.adopted', 'succession.begin', 'succession.taken', 'restart.decided', 'restart.ended', 'child.abort'],
];
const maxLogLines = 60;

/** @returns signals to Envoys, their exits and the decisions behind them from several traces in chronological order, and the last lines of a log */
export function traceEvidence(traces: readonly string[], log: readonly string[] = []): string {
  const events = traces.flatMap(eventsIn).sort((a, b) => a.atMs - b.atMs);
  const eventLines = events.map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text}`);
  return ['events:', ...eventLines, 'log:', ...log.slice(-maxLogLines)].join('\n');
}

function eventsIn(file: string): { atMs: number; text: string }[] {
  const [header, ...records] = readFileSync(file, 'utf8').split('\n').flatMap(parsed);
  const startedAtMs = Date.parse(String(header?.startedAt));
  return records.flatMap(({ kind, t, from, to, event }) => {
    const type = (event as { type?: string } | undefined)?.type;
    if (kind !== 'event' || type === undefined || !relevantEvents.includes(type)) return [];
    const text = `${basename(file)}: ${String(from)} → ${String(to)} ${JSON.stringify(event)}`;
    return [{ atMs: startedAtMs + Number(t), text }];
  });
}

/** A killed agent leaves an incomplete record. */
function parsed(line: string): Record<string, unknown>[] {
  try {
    return [JSON.parse(line) as Record<string, unknown>];
  } catch {
    return [];
  }
}
