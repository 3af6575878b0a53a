/** What a colleague needs of a trace to see why a record happened. */
import type { TracePart } from '../../src/debugger/page-data.ts';
import { causeChain } from '../../src/debugger/trace/cause-chain.ts';
import type { Verdict } from '../../src/debugger/verdicts/verdict.ts';
import type { Recording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** A cause or a consequence that lies farther away is left out: a file is sent by mail. */
const mostAway = 5_000;
/** Records around it all, so that it does not begin and end with a blank screen. */
const air = 20;

/**
 * From the first of a record's causes to it and what it led to at once; and the whole of all that verdicts tell of a time in
 * which it lies: of a restart that it belongs to, up to its end. What is left out before it is told by the states in which
 * everybody begins.
 */
export function partThatMatters(
  open: Recording,
  index: number,
  verdicts: readonly Pick<Verdict, 'range' | 'root'>[],
): ExportedRange {
  const record = open.recordAt(index);
  const causes = record === undefined ? [] : causeChain(open, index).links.map((link) => link.index);
  const told = verdicts
    .filter(({ range: [first, last] }) => first <= index && index <= last)
    .flatMap(({ range, root }) => [...range, ...(root === undefined ? [] : [root])]);
  const led = record === undefined ? [] : open.ledTo(record.seq);
  // They are in order, and may be a million: their ends are enough.
  const all = [index, ...causes, ...told, ...led.slice(0, 1), ...led.slice(-1)];
  const last = Math.min(Math.max(...all) + air, open.length - 1, index + mostAway);
  const first = Math.max(0, Math.min(...all) - air, index - mostAway);
  return { first: Math.min(first, last), last };
}

/**
 * What is known of the whole trace in a file that holds a part of it: how much it is of, and what the whole comes to. By itself
 * the part would say something else: rules know neither what came before it nor what came after. Undefined where it is all.
 *
 * @param before of the open trace, where it is a part itself
 */
export function partOf(
  open: Recording,
  { first, last }: ExportedRange,
  verdicts: readonly Verdict[],
  before: TracePart | undefined,
): TracePart | undefined {
  const of = before?.of ?? open.length;
  if (last - first + 1 === of) return undefined;
  const within = (index: number): boolean => first <= index && index <= last;
  const moved = (index: number): number => Math.min(Math.max(index, first), last) - first;
  return {
    of,
    verdicts: verdicts
      .filter(({ index }) => within(index))
      .map(({ root, ...verdict }) => ({
        ...verdict,
        index: verdict.index - first,
        range: [moved(verdict.range[0]), moved(verdict.range[1])],
        ...(root !== undefined && within(root) && { root: root - first }),
      })),
  };
}
