/** Trace files with mutated lines of a real one. */
import type { Draw } from '../../random-config/draw.ts';
import { mutatedValue, oddText, oddValue } from './breaking-words.ts';
import { mutatedBytes } from './bytes.ts';

/** @param lines of a real trace; the first is its header */
export function randomTrace(draw: Draw, lines: readonly string[]): Buffer {
  const keptLines = lines.slice(0, draw.int(1, lines.length));
  // Most lines stay well-formed, so that the reader gets beyond its first checks.
  const change = draw.chance(0.8) ? withOddParts : changedLine;
  for (let changes = draw.int(1, 4); changes > 0; changes--) {
    const at = draw.int(0, keptLines.length - 1);
    if (keptLines[at] !== undefined && keptLines[at] !== '') keptLines.splice(at, 1, ...change(draw, keptLines[at]));
  }
  const bytes = Buffer.from(keptLines.join('\n') + (draw.chance(0.9) ? '\n' : ''));
  return draw.chance(0.05) ? mutatedBytes(draw, bytes) : bytes;
}

/** Fields that identify a record stay unchanged. */
const formOf: ReadonlySet<string> = new Set(['seq', 't', 'kind', 'format', 'version', 'program']);

function withOddParts(draw: Draw, line: string): string[] {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return [line];
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return [line];
  const fields = Object.entries(record).map(([name, value]) => [
    name,
    !formOf.has(name) && draw.chance(0.4) ? mutatedDeeply(draw, value) : value,
  ]);
  return [JSON.stringify(Object.fromEntries(fields))];
}

/** Mutates at least one inner value, if there is one. */
function mutatedDeeply(draw: Draw, value: unknown): unknown {
  if (typeof value === 'string') return draw.chance(0.5) ? value : oddText(draw);
  return mutatedValue(draw, mutatedValue(draw, value));
}

function changedLine(draw: Draw, line: string): string[] {
  return draw.one<string[]>(
    () => [JSON.stringify(oddValue(draw)) ?? ''],
    () => [],
    () => [line, line],
    () => [line.slice(0, draw.int(0, line.length))],
    () => [oddText(draw)],
  );
}
