/**
 * Compares programs' log lines in a scene with a reviewed file. A line of the file has program, level, scope, event and field names, without values
 * that differ between runs; state changes and lines of Envoy have their text, warnings and errors also their subject and reason. `?` marks a line
 * that depends on timing and may be missing.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

const update = process.env.UPDATE_TRANSCRIPTS === '1';
const folder = join(import.meta.dirname, '../transcripts');

/** Output lines of one program in one scene. */
export interface ProgramOutput {
  readonly program: string;
  readonly lines: readonly string[];
}

interface LogLine {
  readonly level: string;
  readonly scope: string;
  readonly event: string;
  readonly msg: string;
}

/** Lines of a scene other than log lines of level debug or info. A healthy scene has none. */
export function problemLines(outputs: readonly ProgramOutput[]): string[] {
  return outputs.flatMap(({ program, lines }) =>
    lines.filter((line) => !['debug', 'info'].includes(parsed(line)?.level ?? '')).map((line) => `${program}: ${line}`),
  );
}

/** Compares a scene with its file, which contains each line once. UPDATE_TRANSCRIPTS=1 rewrites the file. */
export function expectTranscript(scene: string, outputs: readonly ProgramOutput[]): void {
  const file = join(folder, `${scene}.txt`);
  const seenLines = new Set(
    outputs.flatMap(({ program, lines }) => lines.flatMap((line) => normalised(program, line))),
  );
  const stored = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  const optional = new Set(stored.filter((line) => line.startsWith('? ')).map((line) => line.slice(2)));
  if (update) {
    // A line that was missing in a run becomes optional.
    const missingLines = stored.map((line) => line.replace(/^\? /, '')).filter((line) => !seenLines.has(line));
    const all = [...seenLines].map((line) => (optional.has(line) ? `? ${line}` : line));
    writeFileSync(file, [...all, ...missingLines.map((line) => `? ${line}`)].map((line) => `${line}\n`).join(''));
    return;
  }
  const knownLines = new Set(stored.map((line) => line.replace(/^\? /, '')));
  expect({
    unreviewed: [...seenLines].filter((line) => !knownLines.has(line)),
    missing: stored.filter((line) => !line.startsWith('? ') && !seenLines.has(line)),
  }).toEqual({ unreviewed: [], missing: [] });
}

/** Events whose text is reviewed: a state change, or a line of another program. */
const withText: ReadonlySet<string> = new Set(['state.changed', 'state.degraded', 'envoy.output']);
/** A state that epochs enter only on a busy machine; it changes no other line. */
const slowState = 'slow to start';
/** Events whose fields are the flags and settings with which a test starts a program. */
const eventsWithoutFields: ReadonlySet<string> = new Set(['program.flags', 'agent.config']);

/** Fields whose values are compared, because they are short. */
const withValue: ReadonlySet<string> = new Set([
  ...['lease', 'origin', 'port', 'settings', 'stage'],
  ...['restart.how', 'restart.outcome', 'restart.reason'],
]);
const withValueInTrouble: ReadonlySet<string> = new Set([
  'code',
  'effect',
  'errors',
  'object',
  'place',
  'places',
  'reason',
]);

function normalised(program: string, line: string): string[] {
  const entry = parsed(line);
  if (entry === undefined) return [`${program} - ${maskValues(line)}`];
  const { level, scope, event, msg, ...extraFields } = entry;
  if (event === 'state.changed' && msg.includes(`: starting → ${slowState} `)) return [];
  const text = maskValues(msg.replace(`: ${slowState} → `, ': starting → '));
  if (withText.has(event)) return [[program, level, scope, event, text].join(' ')];
  const isTrouble = level === 'warn' || level === 'error';
  const isShown = (key: string): boolean => withValue.has(key) || (isTrouble && withValueInTrouble.has(key));
  if (eventsWithoutFields.has(event)) return [[program, level, scope, event].join(' ')];
  const fields = Object.entries(extraFields as Readonly<Record<string, unknown>>)
    .filter(([key]) => key !== 'time')
    .map(([key, value]) => (isShown(key) ? `${key}=${maskValues(String(value))}` : key));
  return [[program, level, scope, event, ...(isTrouble ? [`"${text}"`] : []), ...fields.sort()].join(' ')];
}

function parsed(line: string): LogLine | undefined {
  try {
    const value = JSON.parse(line) as LogLine;
    return typeof value === 'object' && typeof value.level === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

function maskValues(text: string): string {
  return (
    text
      .replace(/\d+\.\d+\.\d+-(unknown|[0-9a-f]{12}) \(node v[\d.]+\)/, '<version>')
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
      .replace(/\bt-[0-9a-f]{8}-[0-9a-f]{4}\b/g, '<namespace>')
      .replace(/push \S+:/, 'push <version>:')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replace(/127\.0\.0\.1:\d+/g, '<address>')
      .replace(/(?<![\w<])\.?\/[\w./@-]+/g, '<path>')
      .replace(/\b[0-9a-f]{6,}\b/g, '<hex>')
      .replace(/\d+(\.\d+)*/g, '<n>')
      // The order and reasons of Envoy's lost connections to its agent depend on timing.
      .replace(/^(\w+ gRPC config stream to [xs]ds-grpc closed).*/, '$1')
  );
}
