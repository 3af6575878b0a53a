/** The story of one cause: what led to a record, and what came of it, as one path through the trace. Runs in a browser. */
import { causeChain } from './cause-chain.ts';
import type { RecordList } from './record-list.ts';

export interface Story {
  /** Places of its records, in order; the one that was asked about among them. */
  readonly places: readonly number[];
  /** Where it begins: the last cause that the trace has. */
  readonly root: number;
  /** Whether more came of it than is followed. */
  readonly isCut: boolean;
}

/** Consequences: so many are followed, among so many records behind the one that was asked about. */
const most = { found: 400, looked: 4_000 };

/** One step each way: the nearest cause of a record, and what names it as its cause. */
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

/** All that led to a record, and all that came of it as far as it is followed. */
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

/** The place of a story before (-1) or behind (1) another; undefined at its ends. */
export function nextInStory({ places }: Story, index: number, by: 1 | -1): number | undefined {
  return by === 1 ? places.find((place) => place > index) : places.findLast((place) => place < index);
}
