/** The causes and effects of a record as one path through the trace. Runs in a browser. */
import { causeChain } from './cause-chain.ts';
import type { RecordList } from './record-list.ts';

export interface Story {
  /** Indexes of its records, in order, including the requested one. */
  readonly places: readonly number[];
  /** Index of the first cause in the trace. */
  readonly root: number;
  /** Whether a limit was reached and effects are missing. */
  readonly isCut: boolean;
}

/** Limits: the number of effects, and the number of records searched after the requested one. */
const most = { found: 400, looked: 4_000 };

/** One step in each direction: the nearest cause of a record, and the records that it caused. */
export function neighboursOf(
  list: RecordList & { ledTo(seq: number): readonly number[] },
  index: number,
): Story | undefined {
  const record = list.recordAt(index);
  if (record === undefined) return undefined;
  const before = causeChain(list, index, () => true).links.map((link) => link.index);
  const after = list.ledTo(record.seq);
  return {
    places: [...before, index, ...after.slice(0, most.found)],
    root: before[0] ?? index,
    isCut: after.length > most.found,
  };
}

/** All causes of a record, and its effects up to the limits. */
export function storyOf(list: RecordList, index: number): Story | undefined {
  if (list.recordAt(index) === undefined) return undefined;
  const before = causeChain(list, index)
    .links.map((link) => link.index)
    .reverse();
  const after = new Set([index]);
  const end = Math.min(list.length, index + 1 + most.looked);
  for (let at = index + 1; at < end && after.size <= most.found; at++) {
    const cause = causeChain(list, at, () => true).links[0]?.index;
    if (cause !== undefined && after.has(cause)) after.add(at);
  }
  return {
    places: [...before, ...after],
    root: before[0] ?? index,
    isCut: after.size > most.found || end < list.length,
  };
}

/** The index in the path before (-1) or after (1) another; `undefined` at its ends. */
export function nextInStory({ places }: Story, index: number, by: 1 | -1): number | undefined {
  return by === 1 ? places.find((place) => place > index) : places.findLast((place) => place < index);
}
