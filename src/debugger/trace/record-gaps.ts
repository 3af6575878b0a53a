import type { TraceRecord } from '../../runtime/trace/trace.ts';

const maxReportedGaps = 3;

export function describeGaps(records: readonly TraceRecord[]): string[] {
  const gaps = records.flatMap(({ seq }, recordIndex) => {
    const previousSeq = records[recordIndex - 1]?.seq;
    if (previousSeq === undefined || seq === previousSeq + 1) return [];
    return describeGap(previousSeq, seq);
  });
  if (gaps.length <= maxReportedGaps) return gaps;
  return [...gaps.slice(0, maxReportedGaps), `${gaps.length - maxReportedGaps} more gaps`];
}

export function describeGap(previousSeq: number, nextSeq: number): string {
  return nextSeq === previousSeq + 2
    ? `record ${previousSeq + 1} is missing`
    : `records ${previousSeq + 1} to ${nextSeq - 1} are missing`;
}
