import { describeCause } from '../../src/runtime/actors/log-records.ts';
import type { TraceLine } from '../../src/runtime/trace/trace.ts';
import { followTrace } from '../harness/follow-trace.ts';

/**
 * Formats each state change in a program's trace as one line, e.g. `12:01:02.345  gateway    epoch-1
 * running.initializing.just started → running.live   (probe.passed)`.
 *
 * @param program name in the lines, because two agents have the same name in their traces
 */
export function eventLines(program: string): (line: TraceLine) => string | undefined {
  let startedAt = Date.now();
  return (line) => {
    if (line.kind === 'header') startedAt = Date.parse(line.startedAt);
    if (line.kind !== 'transition') return undefined;
    return `${clockTime(startedAt + line.t)}  ${program.padEnd(15)} ${line.actor.padEnd(20)} ${changeOf(line.from, line.to)}   (${describeCause(line.on)})`;
  };
}

/** Lists only the changed regions of a parallel state. */
function changeOf(from: string, to: string): string {
  if (from === '') return `starts → ${to}`;
  const fromRegions = from.split(' | ');
  const toRegions = to.split(' | ');
  if (fromRegions.length !== toRegions.length) return `${from} → ${to}`;
  return toRegions
    .flatMap((state, region) => (state === fromRegions[region] ? [] : `${fromRegions[region]} → ${state}`))
    .join(', ');
}

function clockTime(epochMs: number): string {
  const time = new Date(epochMs);
  const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');
  return `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}.${pad(time.getMilliseconds(), 3)}`;
}

/** Actors whose states show the progress of a program: about 50 lines for a start instead of 300. */
export const mainActors = /^(discovery|authority|push|supervisor|cert-watcher|epoch-\w+)$/;

/**
 * Prints the state changes of a running program.
 *
 * @param actors pattern of the printed actors; `undefined` prints all
 * @returns a function that stops printing
 */
export function printEvents(
  program: string,
  traceFile: string,
  print: (line: string) => void,
  actors?: RegExp,
): () => void {
  const toText = eventLines(program);
  return followTrace(traceFile, (line) => {
    if (line.kind === 'transition' && actors?.test(line.actor) === false) return;
    const text = toText(line);
    if (text !== undefined) print(text);
  });
}
