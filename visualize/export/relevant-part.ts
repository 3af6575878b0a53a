import type { Finding } from '../../src/debugger/findings/finding.ts';
import type { ExportedPart } from '../../src/debugger/page-data.ts';
import { causeChain } from '../../src/debugger/trace/cause-chain.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** Limits the distance to a cause or consequence, so that the file can be mailed. */
const maxRecordsAway = 5_000;
/** Records before and after the part, so that its first and last views are not empty. */
const marginRecords = 20;

/** The range from the first cause of a record to its direct consequences, and the ranges of all findings that contain the record. */
export function relevantPart(
  openRecording: PageRecording,
  index: number,
  findings: readonly Pick<Finding, 'range' | 'root'>[],
): ExportedRange {
  const record = openRecording.recordAt(index);
  const causes = record === undefined ? [] : causeChain(openRecording, index).links.map((link) => link.index);
  const boundsOfFindings = findings
    .filter(({ range: [first, last] }) => first <= index && index <= last)
    .flatMap(({ range, root }) => [...range, ...(root === undefined ? [] : [root])]);
  const consequenceIndexes = record === undefined ? [] : openRecording.consequencesOf(record.seq);
  // The sorted list may have a million entries, so only its ends are used.
  const includedIndexes = [
    index,
    ...causes,
    ...boundsOfFindings,
    ...consequenceIndexes.slice(0, 1),
    ...consequenceIndexes.slice(-1),
  ];
  const last = Math.min(Math.max(...includedIndexes) + marginRecords, openRecording.length - 1, index + maxRecordsAway);
  const first = Math.max(0, Math.min(...includedIndexes) - marginRecords, index - maxRecordsAway);
  return { first: Math.min(first, last), last };
}

/**
 * `undefined` if the part is the complete trace.
 *
 * @param openPart part information of the open trace, if it is a part itself
 */
export function partInformationOf(
  openRecording: PageRecording,
  { first, last }: ExportedRange,
  findings: readonly Finding[],
  openPart: ExportedPart | undefined,
): ExportedPart | undefined {
  const totalRecords = openPart?.of ?? openRecording.length;
  if (last - first + 1 === totalRecords) return undefined;
  const isInRange = (index: number): boolean => first <= index && index <= last;
  const shiftedIndex = (index: number): number => Math.min(Math.max(index, first), last) - first;
  return {
    of: totalRecords,
    verdicts: findings
      .filter(({ index }) => isInRange(index))
      .map(({ root, ...finding }) => ({
        ...finding,
        index: finding.index - first,
        range: [shiftedIndex(finding.range[0]), shiftedIndex(finding.range[1])],
        ...(root !== undefined && isInRange(root) && { root: root - first }),
      })),
  };
}
