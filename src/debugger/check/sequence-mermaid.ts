import { visibleLine } from '../../runtime/visible-text.ts';
import type { Deviation } from './check.ts';
import { describeDeviation } from './check-report-text.ts';
import type { Message } from './message.ts';

export interface DrawnSequence {
  readonly about?: readonly string[];
  readonly messages: readonly Message[];
  readonly deviations?: readonly Deviation[];
  /** Notes that describe the omitted messages. */
  readonly above?: string;
  readonly below?: string;
}

const maxExpected = 6;
/** Readable on a light and on a dark page. */
const deviationColour = 'rgba(220, 50, 50, 0.25)';
/** Keywords that begin a mermaid statement and cannot be the ID of a participant. */
const reservedWords = new Set(
  (
    'sequencediagram participant actor create destroy as note over left right of links link properties details box rect ' +
    'loop alt else opt par par_over and critical option break end activate deactivate autonumber off title acctitle accdescr'
  ).split(' '),
);

/** The text of an arrow begins with the message type, as in the contracts. */
export function sequenceMermaid({ about = [], messages, deviations = [], above, below }: DrawnSequence): string {
  const ids = idsOf(messages);
  const deviationsByLine = new Map<number, Deviation[]>();
  for (const deviation of deviations) {
    deviationsByLine.set(deviation.message.seq, [...(deviationsByLine.get(deviation.message.seq) ?? []), deviation]);
  }
  const names = [...ids.keys()];
  const sideNote = (text: string | undefined): string[] =>
    text === undefined ? [] : [`note over ${arrowEnds(ids, names[0]!, names.at(-1)!)}: ${escapeText(text)}`];
  return [
    ...about.map((line) => `%% ${visibleLine(line)}`),
    'sequenceDiagram',
    ...[
      ...names.map((name) => `participant ${ids.get(name)} as ${escapeText(name)}`),
      ...sideNote(above),
      ...messages.flatMap((message) => formatArrow(message, deviationsByLine.get(message.seq) ?? [], ids)),
      ...sideNote(below),
    ].map((line) => `  ${line}`),
    '',
  ].join('\n');
}

function formatArrow(message: Message, deviations: readonly Deviation[], ids: ReadonlyMap<string, string>): string[] {
  const { seq, t, from, to, type } = message;
  const arrow = `${ids.get(from)}->>${ids.get(to)}: ${escapeText(type)} (record ${seq}, ${t} ms)`;
  if (deviations.length === 0) return [arrow];
  const noteLines = deviations.map((deviation) => {
    const { headline, expected } = describeDeviation(deviation);
    const shownMessages = expected.slice(0, maxExpected);
    const lines = [
      headline,
      ...(shownMessages.length === 0 ? [] : ['expected:', ...shownMessages]),
      ...(shownMessages.length < expected.length ? [`… and ${expected.length - shownMessages.length} more`] : []),
    ];
    return `  note over ${arrowEnds(ids, from, to)}: ${lines.map(escapeText).join('<br/>')}`;
  });
  return [`rect ${deviationColour}`, `  ${arrow}`, ...noteLines, 'end'];
}

function arrowEnds(ids: ReadonlyMap<string, string>, from: string, to: string): string {
  return from === to ? ids.get(from)! : `${ids.get(from)},${ids.get(to)}`;
}

function idsOf(messages: readonly Message[]): ReadonlyMap<string, string> {
  const ids = new Map<string, string>();
  const takenIds = new Set<string>();
  for (const name of messages.flatMap(({ from, to }) => [from, to])) {
    if (ids.has(name)) continue;
    const identifier = name.replaceAll(/[^A-Za-z0-9]+/g, '_') || '_';
    const baseIdentifier = reservedWords.has(identifier.toLowerCase()) ? `${identifier}_` : identifier;
    let id = baseIdentifier;
    for (let n = 2; takenIds.has(id); n++) id = `${baseIdentifier}_${n}`;
    takenIds.add(id);
    ids.set(name, id);
  }
  // Mermaid rejects a diagram without participants.
  return ids.size === 0 ? new Map([['nobody', 'nobody']]) : ids;
}

const entities: Readonly<Record<string, string>> = { '#': '#35;', ';': '#59;', '<': '#lt;', '>': '#gt;' };

/** Escapes text that mermaid would parse as the end of a statement, as an entity or as markup. */
function escapeText(text: string): string {
  return visibleLine(text).replaceAll(/[#;<>]/g, (character) => entities[character]!);
}
