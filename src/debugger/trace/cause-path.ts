/** The causes and effects of a record as one path through the trace. */
import { causeChain } from './cause-chain.ts';
import type { RecordList } from './record-list.ts';

export interface CausePath {
  readonly indexes: readonly number[];
  readonly root: number;
  readonly isTruncated: boolean;
}

const limits = { found: 400, looked: 4_000 };

export function neighboursOf(
  recordList: RecordList & { consequencesOf(seq: number): readonly number[] },
  index: number,
): CausePath | undefined {
  const record = recordList.recordAt(index);
  if (record === undefined) return undefined;
  const causes = causeChain(recordList, index, () => true).links.map((link) => link.index);
  const consequences = recordList.consequencesOf(record.seq);
  return {
    indexes: [...causes, index, ...consequences.slice(0, limits.found)],
    root: causes[0] ?? index,
    isTruncated: consequences.length > limits.found,
  };
}

export function causePathOf(recordList: RecordList, index: number): CausePath | undefined {
  if (recordList.recordAt(index) === undefined) return undefined;
  const causes = causeChain(recordList, index)
    .links.map((link) => link.index)
    .reverse();
  const visited = new Set([index]);
  const end = Math.min(recordList.length, index + 1 + limits.looked);
  for (let candidate = index + 1; candidate < end && visited.size <= limits.found; candidate++) {
    const cause = causeChain(recordList, candidate, () => true).links[0]?.index;
    if (cause !== undefined && visited.has(cause)) visited.add(candidate);
  }
  return {
    indexes: [...causes, ...visited],
    root: causes[0] ?? index,
    isTruncated: visited.size > limits.found || end < recordList.length,
  };
}

/** `undefined` at the ends of the path. */
export function nextIndexInPath({ indexes }: CausePath, index: number, direction: 1 | -1): number | undefined {
  return direction === 1
    ? indexes.find((pathIndex) => pathIndex > index)
    : indexes.findLast((pathIndex) => pathIndex < index);
}
