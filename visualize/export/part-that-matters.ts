/** The part of a trace that shows why a record happened. */
import type { TracePart } from '../../src/debugger/page-data.ts';
import { causeChain } from '../../src/debugger/trace/cause-chain.ts';
import type { Verdict } from '../../src/debugger/verdicts/verdict.ts';
import type { Recording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** Causes and consequences farther away are left out, so that the file can be sent by mail. */
const mostAway = 5_000;
/** Margin of records, so that the part does not begin and end with an empty view. */
const air = 20;

/**
 * From the first cause of a record to its direct consequences, including the ranges of all findings that contain it:
 * for example the whole restart that it belongs to. The initial states of the actors represent what happened before.
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
  // They are in order, and may be a million, so only their ends are used.
  const all = [index, ...causes, ...told, ...led.slice(0, 1), ...led.slice(-1)];
  const last = Math.min(Math.max(...all) + air, open.length - 1, index + mostAway);
  const first = Math.max(0, Math.min(...all) - air, index - mostAway);
  return { first: Math.min(first, last), last };
}

/**
 * Data of the whole trace for a file that contains a part of it: the number of records and the findings. Rules applied
 * to the part alone would give other findings, because they depend on earlier and later records. `undefined` if the
 * part is the whole trace.
 *
 * @param before part information of the open trace, if it is a part itself
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
