import { visibleLine } from '../../runtime/visible-text.ts';
import type { Diagram } from '../diagram/diagram.ts';
import type { Deviation, TraceCheckReport } from './check.ts';
import type { ExpectedMessage } from './contract.ts';
import type { Message } from './message.ts';

/** A `par` may allow very many arrows. */
const maxExpected = 8;
/** Later deviations are often consequences of the first. */
const maxDeviations = 10;
const maxSeries = 12;

export function formatDeviation(deviation: Deviation, diagrams: readonly Diagram[]): string {
  const { message, before } = deviation;
  const trace = [
    ...before.map((earlierMessage) => `      ${formatMessage(earlierMessage)}`),
    `    ► ${formatMessage(message)}`,
  ];
  return [headline(deviation), '  trace', ...trace, ...expectedMessageLines(deviation, diagrams)].join('\n');
}

export function describeDeviation(deviation: Deviation): { headline: string; expected: string[] } {
  const { message, expected } = deviation;
  return {
    headline: `${headline(deviation)}: ${formatEnds(message)}`,
    expected: expected.map((next) => `${formatEnds(next)} (${next.file}:${next.line})`),
  };
}

export function formatReport(report: TraceCheckReport, diagrams: readonly Diagram[]): string {
  const { departures, counts } = report;
  const shownDeviations = departures.slice(0, maxDeviations);
  const width = Math.max(0, ...report.diagrams.map(({ file }) => file.length));
  return [
    ...shownDeviations.map(
      (deviation, i) => `deviation ${i + 1} of ${counts.departures}: ${formatDeviation(deviation, diagrams)}\n`,
    ),
    ...(shownDeviations.length < counts.departures
      ? [`… and ${counts.departures - shownDeviations.length} more deviations\n`]
      : []),
    ...(counts.lost > 0
      ? [`${counts.lost} records are missing from the trace; activations that contain them are checked in part\n`]
      : []),
    ...report.diagrams.map(({ file, started, completed, interrupted, live }) =>
      `${file.padEnd(width)}  ${started} ${started === 1 ? 'activation' : 'activations'}: ${completed} completed, ${interrupted} interrupted, ${live} live`.trim(),
    ),
    ...report.notChecked.map(
      ({ file, omitted }) =>
        `${file}  not checked: the trace omits ${visibleLine(omitted.join(', '))} (record with --traceLevel full)`,
    ),
    `${counts.records} records: ${counts.accepted} messages accepted, ${counts.departures} deviations; ${ignoredText(report)}`,
  ].join('\n');
}

/** Names the ignored actors, so that a misspelled participant of a diagram is noticed. */
function ignoredText({ counts, ignoredActors }: TraceCheckReport): string {
  const { internal, unknownActor, notInDiagrams } = counts.ignored;
  const actors = ignoredActors.slice(0, maxSeries).map(({ series, messages }) => `${visibleLine(series)} ${messages}`);
  if (ignoredActors.length > maxSeries) actors.push('…');
  return (
    `ignored: ${internal} XState internals, ${unknownActor} of actors in no diagram` +
    `${actors.length === 0 ? '' : ` (${actors.join(', ')})`}, ${notInDiagrams} spawns, timers and ends in no diagram`
  );
}

function headline({ kind, message, diagram }: Deviation): string {
  const record = `record ${message.seq}`;
  const location = diagram === undefined ? '' : `${diagram.file}:${diagram.line}`;
  switch (kind) {
    case 'out-of-order':
      return `${record} is out of order (${location})`;
    case 'unexpected':
      return `${record} is not allowed here (${location})`;
    case 'undeclared':
      return `${record} is in no diagram, although both actors are`;
  }
}

function expectedMessageLines({ kind, diagram, expected }: Deviation, diagrams: readonly Diagram[]): string[] {
  if (diagram === undefined) return [];
  const lineOf = (file: string, line: number): string =>
    diagrams.find((candidate) => candidate.file === file)?.source[line - 1]?.trim() ?? '';
  const expectedLines = expected.slice(0, maxExpected).map((next) => {
    const source = lineOf(next.file, next.line);
    return `    ► ${next.file === diagram.file ? '' : `${next.file}:`}${next.line}: ${source}   (${formatEnds(next)})`;
  });
  const omittedText = expected.length > maxExpected ? [`      … and ${expected.length - maxExpected} more`] : [];
  const startText = diagram.startedAt === undefined ? '' : ` started by record ${diagram.startedAt}`;
  const n = diagram.n === undefined ? '' : `, N = ${diagram.n}`;
  const title =
    kind === 'out-of-order'
      ? `  ${diagram.file}, activation${startText}${n}, last step: record ${diagram.lastAccepted}; expected next:`
      : `  ${diagram.file}:${diagram.line} contains it; expected now:`;
  return [title, ...expectedLines, ...omittedText];
}

function formatMessage(message: Message): string {
  return `record ${message.seq} at ${message.t} ms: ${formatEnds(message)}`;
}

function formatEnds({ from, to, type }: Message | ExpectedMessage): string {
  return visibleLine(`${from} → ${to}: ${type}`);
}
