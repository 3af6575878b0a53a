import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { valueAt } from '../../runtime/trace/trace-state.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import { formatRecord } from '../trace/print-trace.ts';
import type { Difference, ReplayReport } from './replay.ts';

const maxWarnings = 5;
const maxValueLength = 300;

export function formatReplay({ records, compared, difference, warnings }: ReplayReport): string {
  const shownWarnings = warnings.slice(0, maxWarnings);
  return [
    ...(difference === undefined ? [] : [`${formatDifference(difference)}\n`]),
    ...shownWarnings.map((warning) => visibleLine(`warning: ${warning}`)),
    ...(shownWarnings.length < warnings.length
      ? [`… and ${warnings.length - shownWarnings.length} more warnings`]
      : []),
    `${records} records: ${compared} compared${difference === undefined ? ', no difference' : ' before the first difference'}`,
  ].join('\n');
}

export function formatDifference(difference: Difference): string {
  const { seq, recorded, replayed, before, cause, field, why } = difference;
  return [
    visibleLine(headline(difference)),
    '  before it, equal in both',
    ...[...(cause === undefined ? [] : [cause]), ...before].map((record) => `    ${formatRecord(record)}`),
    `  recorded  ${recorded === undefined ? noRecordText(seq) : formatRecord(recorded)}`,
    `  replayed  ${replayed === undefined ? `${noRecordText()}${why === undefined ? '' : `: ${visibleLine(why)}`}` : formatRecord(replayed)}`,
    ...valuesAt(field, recorded, replayed),
  ].join('\n');
}

function headline({ seq, actor, recorded, replayed, field }: Difference): string {
  const recordText = `record ${seq}: ${actor}`;
  if (recorded === undefined) return `${recordText}: not in the recording`;
  if (replayed === undefined) return `${recordText}: missing in the replay`;
  return `${recordText}: differs from the recording${field === undefined ? '' : ` in ${field}`}`;
}

function noRecordText(seq?: number): string {
  return seq === undefined ? 'nothing' : `nothing; the next record, ${seq}, is an external input`;
}

function valuesAt(
  field: string | undefined,
  recordedRecord: TraceRecord | undefined,
  replayedRecord: TraceRecord | undefined,
): string[] {
  if (field === undefined || recordedRecord === undefined || replayedRecord === undefined) return [];
  return [
    `  ${visibleLine(field)}`,
    `    recorded  ${fieldText(recordedRecord, field)}`,
    `    replayed  ${fieldText(replayedRecord, field)}`,
  ];
}

function fieldText(record: TraceRecord, field: string): string {
  const value = JSON.stringify(field.startsWith('/change/') ? changeAt(record, field) : valueAt(record, field));
  if (value === undefined) return 'nothing';
  const text = visibleLine(value);
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
}

/** `field` consists of the path of a change and of a path in its value. */
function changeAt(record: TraceRecord, field: string): unknown {
  const changedPath = field.slice('/change'.length);
  const changes = 'change' in record ? (record.change ?? []) : [];
  const change = changes.find(({ path }) => path === '' || changedPath === path || changedPath.startsWith(`${path}/`));
  return change === undefined ? undefined : valueAt(change.value, changedPath.slice(change.path.length));
}
