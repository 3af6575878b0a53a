import type { Finding } from '../../src/debugger/findings/finding.ts';
import type { ExportedPart } from '../../src/debugger/page-data.ts';
import { causeChain } from '../../src/debugger/trace/cause-chain.ts';
import type { Recording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** Maximum distance in records to a cause or consequence, so that the file is small enough for mail. */
const mostAway = 5_000;
/** Records before and after the part, so that its first and last views are not empty. */
const air = 20;

/**
 * Returns the range from the first cause of a record to its direct consequences, and the ranges of all findings that contain the record, such as a
 * restart. The initial states of the actors replace earlier records.
 */
export function partThatMatters(
  open: Recording,
  index: number,
  verdicts: readonly Pick<Finding, 'range' | 'root'>[],
): ExportedRange {
  const record = open.recordAt(index);
  const causes = record === undefined ? [] : causeChain(open, index).links.map((link) => link.index);
  const told = verdicts
    .filter(({ range: [first, last] }) => first <= index && index <= last)
    .flatMap(({ range, root }) => [...range, ...(root === undefined ? [] : [root])]);
  const led = record === undefined ? [] : open.ledTo(record.seq);
  // The sorted list may have a million entries, so only its ends are used.
  const all = [index, ...causes, ...told, ...led.slice(0, 1), ...led.slice(-1)];
  const last = Math.min(Math.max(...all) + air, open.length - 1, index + mostAway);
  const first = Math.max(0, Math.min(...all) - air, index - mostAway);
  return { first: Math.min(first, last), last };
}

/**
 * Number of records and findings of the complete trace, for a file that contains a part of it. Evaluating the rules on the part alone would give
 * other findings, because they depend on earlier and later records. `undefined` if the part is the complete trace.
 *
 * @param before part information of the open trace, if it is a part itself
 */
export function partOf(
  open: Recording,
  { first, last }: ExportedRange,
  verdicts: readonly Finding[],
  before: ExportedPart | undefined,
): ExportedPart | undefined {
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
