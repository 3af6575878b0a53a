import type { TraceRecord } from '../../runtime/trace/trace.ts';

const mostTold = 3;

/** One text per gap in the numbers of records, because findings may be wrong if records are missing. */
export function gapsIn(records: readonly TraceRecord[]): string[] {
  const gaps = records.flatMap(({ seq }, place) => {
    const before = records[place - 1]?.seq;
    if (before === undefined || seq === before + 1) return [];
    return gapBetween(before, seq);
  });
  if (gaps.length <= mostTold) return gaps;
  return [...gaps.slice(0, mostTold), `${gaps.length - mostTold} more gaps`];
}

export function gapBetween(before: number, after: number): string {
  return after === before + 2 ? `record ${before + 1} is missing` : `records ${before + 1} to ${after - 1} are missing`;
}
