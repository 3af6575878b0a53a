/** Trace files: lines of a real one, changed. */
import type { Draw } from '../../random-config/draw.ts';
import { mutatedBytes } from './bytes.ts';
import { mutatedValue, oddText, oddValue } from './words.ts';

/** @param lines of a real trace; the first is its header */
export function randomTrace(draw: Draw, lines: readonly string[]): Buffer {
  const from = draw.int(1, Math.max(1, lines.length - 40));
  const kept = [lines[0]!, ...lines.slice(from, from + draw.int(0, 40))];
  const changed = kept.flatMap((line, index) => changedLine(draw, line, index === 0 ? 0.1 : 0.3));
  const bytes = Buffer.from(changed.join('\n') + (draw.chance(0.8) ? '\n' : ''));
  return draw.chance(0.1) ? mutatedBytes(draw, bytes) : bytes;
}

function changedLine(draw: Draw, line: string, probability: number): string[] {
  if (!draw.chance(probability)) return [line];
  return draw.one<string[]>(
    () => [JSON.stringify(mutatedValue(draw, JSON.parse(line)))],
    () => [JSON.stringify(mutatedValue(draw, JSON.parse(line)))],
    () => [JSON.stringify(oddValue(draw)) ?? ''],
    () => [],
    () => [line, line],
    () => [line.slice(0, draw.int(0, line.length))],
    () => [oddText(draw)],
  );
}
