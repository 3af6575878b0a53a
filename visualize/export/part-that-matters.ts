/** What a colleague needs of a trace to see why a record happened. */
import { causeChain } from '../../src/debugger/trace/cause-chain.ts';
import type { Verdict } from '../../src/debugger/verdicts/verdict.ts';
import type { Recording } from '../model/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** A cause that lies farther back is left out: a file is sent by mail. */
const mostBefore = 5_000;
/** Records around it all, so that it does not begin and end with a blank screen. */
const air = 20;

/**
 * From the first of a record's causes to it and what it led to at once; and the whole of what the verdict there is about.
 * What is left out before it is told by the states in which everybody begins.
 */
export function partThatMatters(
  open: Recording,
  index: number,
  verdict: Pick<Verdict, 'range' | 'root'> | undefined,
): ExportedRange {
  const record = open.recordAt(index);
  const causes = record === undefined ? [] : causeChain(open, index).links.map((link) => link.index);
  const told = verdict === undefined ? [] : [...verdict.range, ...(verdict.root === undefined ? [] : [verdict.root])];
  const isAbout = verdict !== undefined && verdict.range[0] <= index && index <= verdict.range[1];
  const all = [index, ...causes, ...(isAbout ? told : []), ...(record === undefined ? [] : open.ledTo(record.seq))];
  const last = Math.min(Math.max(...all) + air, open.length - 1);
  const first = Math.max(0, Math.min(...all) - air, index - mostBefore);
  return { first: Math.min(first, last), last };
}
