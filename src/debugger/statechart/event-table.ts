import { matchesDescriptor } from '../../runtime/trace/event-descriptor.ts';
import type { Statechart, StatechartTransition } from '../../runtime/trace/statechart.ts';
import { isIgnored } from './chart-text.ts';
import { ancestorsOf } from './connections.ts';

export interface Cell {
  /** Transitions of the state, then those of its ancestors. Empty for an unexpected event. */
  readonly triedTransitions: readonly StatechartTransition[];
}

export interface EventTable {
  readonly events: readonly string[];
  readonly states: readonly { readonly path: string; readonly cells: readonly Cell[] }[];
}

/** Events of XState about child actors are excluded, because an effect exists only in the states that need it. */
const isMessage = ({ kind }: StatechartTransition): boolean => kind === 'event';

export function eventTableOf(chart: Statechart): EventTable {
  const events = [...new Set(chart.transitions.filter(isMessage).map(({ on }) => on))].sort(namesBeforeWildcards);
  const stableStates = chart.states.flatMap((_, number) => (isStableState(chart, number) ? [number] : []));
  return {
    events,
    states: stableStates.map((number) => ({
      path: chart.states[number]!.path || chart.id,
      cells: events.map((event) => ({ triedTransitions: triedTransitionsOf(chart, number, event) })),
    })),
  };
}

/** The column of a wildcard stands for the events that no column before it names. */
function namesBeforeWildcards(a: string, b: string): number {
  const kindOrder = Number(a.endsWith('*')) - Number(b.endsWith('*'));
  // A longer wildcard is tried before a shorter one.
  return kindOrder || (a.endsWith('*') ? b.length - a.length : 0) || (a < b ? -1 : 1);
}

/** A stable state is a leaf that is not left immediately after it was entered. */
function isStableState(chart: Statechart, number: number): boolean {
  const { type } = chart.states[number]!;
  if (type === 'final' || type === 'history') return false;
  if (chart.states.some(({ parent }) => parent === number)) return false;
  return !chart.transitions.some(
    ({ source, kind, guard }) => source === number && kind === 'always' && guard === undefined,
  );
}

function triedTransitionsOf(chart: Statechart, number: number, event: string): StatechartTransition[] {
  const triedTransitions: StatechartTransition[] = [];
  for (const state of [number, ...ancestorsOf(chart, number)]) {
    const candidates = chart.transitions.filter(
      (transition) => transition.source === state && isMessage(transition) && matchesDescriptor(event, transition.on),
    );
    // The event itself first, then wildcards, the longest first.
    candidates.sort((a, b) => Number(b.on === event) - Number(a.on === event) || b.on.length - a.on.length);
    for (const transition of candidates) {
      triedTransitions.push(transition);
      if (transition.guard === undefined) return triedTransitions;
    }
  }
  return triedTransitions;
}

const unexpectedSign = '×';

/** The result is a section of Markdown with states as rows and events as columns, and the details that a symbol cannot express. */
export function formatEventTable(chart: Statechart): string {
  const { events, states } = eventTableOf(chart);
  if (events.length === 0) return 'No other actor sends it events.\n';
  const rows = states.map(({ path, cells }) => [code(path), ...cells.map(symbolOf)]);
  const table = [['', ...events.map(code)], ['---', ...events.map(() => ':-:')], ...rows];
  const lines = table.map((cells) => `| ${cells.join(' | ')} |`);
  const details = states.flatMap(({ path, cells }) => {
    const lines = cells.flatMap(({ triedTransitions }, index) =>
      triedTransitions.some((transition) => !isIgnored(transition))
        ? [
            `  - ${code(events[index]!)}: ${triedTransitions.map((transition) => plainText(describeTransition(chart, transition))).join('; ')}`,
          ]
        : [],
    );
    return lines.length === 0 ? [] : [`- **${plainText(path)}**`, ...lines];
  });
  return `${[...lines, '', ...details].join('\n')}\n`;
}

/** The symbol is in parentheses if the transition has a condition. */
function symbolOf({ triedTransitions }: Cell): string {
  if (triedTransitions.length === 0) return unexpectedSign;
  const sign = triedTransitions.some(({ targets }) => targets.length > 0)
    ? '→'
    : triedTransitions.every(isIgnored)
      ? '–'
      : '•';
  return triedTransitions.some(({ guard }) => guard !== undefined) ? `(${sign})` : sign;
}

function describeTransition(
  chart: Statechart,
  { targets, guard, actions = [], description }: StatechartTransition,
): string {
  const to = targets.map((number) => `→ ${chart.states[number]!.path || chart.id}`).join(', ');
  const effectText = [to, actions.join(', ')].filter((segment) => segment !== '').join(', ') || 'ignored';
  const descriptionText = description === undefined ? '' : ` (${description})`;
  return `${guard === undefined ? '' : `if ${guard}: `}${effectText}${descriptionText}`;
}

function code(name: string): string {
  return `\`${oneLine(name).replaceAll('`', "'").replaceAll('|', '\\|')}\``;
}

function plainText(escapeCell: string): string {
  return oneLine(escapeCell).replaceAll('<', '&lt;');
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
