/** Messages of a trace as a mermaid sequence diagram. Runs in a browser. */
import { visibleLine } from '../../runtime/visible-text.ts';
import type { Departure } from './check.ts';
import { departureInWords } from './check-report-text.ts';
import type { Message } from './message.ts';

export interface DrawnSequence {
  /** Told in comments above the diagram. */
  readonly about?: readonly string[];
  readonly messages: readonly Message[];
  /** Those of the messages' departures are marked. */
  readonly departures?: readonly Departure[];
  /** Told in a note above the first message, and below the last one: what is left out there. */
  readonly above?: string;
  readonly below?: string;
}

/** The expected messages that a note names. */
const maxExpected = 6;
/** Readable on a light page and on a dark one. */
const departureColour = 'rgba(220, 50, 50, 0.25)';
/** Words that begin a statement of mermaid's: no participant's id. */
const reserved = new Set(
  (
    'sequencediagram participant actor create destroy as note over left right of links link properties details box rect ' +
    'loop alt else opt par par_over and critical option break end activate deactivate autonumber off title acctitle accdescr'
  ).split(' '),
);

/**
 * The diagram. An arrow's text begins with the message's type, as in the contracts, and tells the record's number and time;
 * a participant is shown by its actor's name. A message that departed has a red ground and a note that says what was expected.
 */
export function sequenceMermaid({ about = [], messages, departures = [], above, below }: DrawnSequence): string {
  const ids = idsOf(messages);
  const departed = new Map<number, Departure[]>();
  for (const departure of departures) {
    departed.set(departure.message.seq, [...(departed.get(departure.message.seq) ?? []), departure]);
  }
  const names = [...ids.keys()];
  const aside = (text: string | undefined): string[] =>
    text === undefined ? [] : [`note over ${ends(ids, names[0]!, names.at(-1)!)}: ${escaped(text)}`];
  return [
    ...about.map((line) => `%% ${visibleLine(line)}`),
    'sequenceDiagram',
    ...[
      ...names.map((name) => `participant ${ids.get(name)} as ${escaped(name)}`),
      ...aside(above),
      ...messages.flatMap((message) => drawn(message, departed.get(message.seq) ?? [], ids)),
      ...aside(below),
    ].map((line) => `  ${line}`),
    '',
  ].join('\n');
}

function drawn(message: Message, departures: readonly Departure[], ids: ReadonlyMap<string, string>): string[] {
  const { seq, t, from, to, type } = message;
  const arrow = `${ids.get(from)}->>${ids.get(to)}: ${escaped(type)} (record ${seq}, ${t} ms)`;
  if (departures.length === 0) return [arrow];
  const notes = departures.map((departure) => {
    const { headline, expected } = departureInWords(departure);
    const shown = expected.slice(0, maxExpected);
    const lines = [
      headline,
      ...(shown.length === 0 ? [] : ['expected:', ...shown]),
      ...(shown.length < expected.length ? [`… and ${expected.length - shown.length} more`] : []),
    ];
    return `  note over ${ends(ids, from, to)}: ${lines.map(escaped).join('<br/>')}`;
  });
  return [`rect ${departureColour}`, `  ${arrow}`, ...notes, 'end'];
}

function ends(ids: ReadonlyMap<string, string>, from: string, to: string): string {
  return from === to ? ids.get(from)! : `${ids.get(from)},${ids.get(to)}`;
}

/** Ids of the actors, in the order in which they come: words that mermaid takes for nothing else. */
function idsOf(messages: readonly Message[]): ReadonlyMap<string, string> {
  const ids = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of messages.flatMap(({ from, to }) => [from, to])) {
    if (ids.has(name)) continue;
    const word = name.replaceAll(/[^A-Za-z0-9]+/g, '_') || '_';
    const base = reserved.has(word.toLowerCase()) ? `${word}_` : word;
    let id = base;
    for (let n = 2; taken.has(id); n++) id = `${base}_${n}`;
    taken.add(id);
    ids.set(name, id);
  }
  // A diagram without participants is none to mermaid.
  return ids.size === 0 ? new Map([['nobody', 'nobody']]) : ids;
}

const entities: Readonly<Record<string, string>> = { '#': '#35;', ';': '#59;', '<': '#lt;', '>': '#gt;' };

/** Text in which mermaid sees no end of a statement, no entity and no markup. */
function escaped(text: string): string {
  return visibleLine(text).replaceAll(/[#;<>]/g, (sign) => entities[sign]!);
}
