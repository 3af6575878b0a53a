/** The causes and effects of a record as one path through the trace. */
import { causeChain } from './cause-chain.ts';
import type { RecordList } from './record-list.ts';

export interface Story {
  readonly places: readonly number[];
  readonly root: number;
  /** Whether effects are missing because of a limit. */
  readonly isCut: boolean;
}

/** Limits of the effects, and of the records that are searched for them. */
const most = { found: 400, looked: 4_000 };

/** The nearest cause of a record, and the records that it caused. */
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

/** The index before (-1) or after (1) another one in the path; `undefined` at its ends. */
export function nextInStory({ places }: Story, index: number, by: 1 | -1): number | undefined {
  return by === 1 ? places.find((place) => place > index) : places.findLast((place) => place < index);
}
