/**
 * A reduced statechart: a closed state is one box without its children, and a long row of states is reduced to those
 * near the active one.
 */
import type { Statechart, StatechartState, StatechartTransition } from '../../runtime/trace/statechart.ts';
import { ancestorsOf } from './connections.ts';

export interface FoldedStatechart {
  /** Its transitions have the numbers of the complete chart. */
  readonly chart: Statechart;
  /** For each state its number in the complete chart; `undefined` for a placeholder of several states. */
  readonly numbers: readonly (number | undefined)[];
  /** For each state the number of its omitted children. */
  readonly leftOut: readonly number[];
}

/** A row of more states than this is shortened. */
export const longRow = 9;
/** Number of states that remain of a row, including the one in its centre. */
const keptOfRow = 7;

/**
 * @param open numbers of the states whose children are shown, with their ancestors; the machine itself is always open
 * @param near number of a state in a long row: distant states of the row are merged into one box
 */
export function foldStatechart(chart: Statechart, open: ReadonlySet<number>, near?: number): FoldedStatechart {
  const kept = near === undefined ? undefined : nearIn(chart, near);
  const row = near === undefined ? undefined : chart.states[near]?.parent;
  /** The state that is drawn for each state: itself, or the one that it is folded into. */
  const drawn: number[] = [];
  let rest: number | undefined;
  chart.states.forEach(({ parent }, number) => {
    if (parent === undefined) drawn[number] = number;
    else if (drawn[parent] !== parent) drawn[number] = drawn[parent]!;
    else if (parent !== 0 && !open.has(parent)) drawn[number] = parent;
    else if (parent === row && kept?.has(number) === false) drawn[number] = rest ??= number;
    else drawn[number] = number;
  });
  const shown = chart.states.flatMap((_, number) => (drawn[number] === number ? [number] : []));
  const placeOf = new Map(shown.map((number, place) => [number, place]));
  const placed = (number: number): number => placeOf.get(drawn[number]!)!;
  const leftOut = shown.map(
    (number) => drawn.filter((into, ownNumber) => into === number && ownNumber !== number).length,
  );
  const states = shown.map((number, place): StatechartState => {
    const { parent, initial, ...state } = chart.states[number]!;
    const placedParent = parent !== undefined && { parent: placed(parent) };
    if (number === rest) {
      const count = drawn.filter((into) => into === number).length;
      return { ...placeholderOf(chart.states[parent!]!.path, count), ...placedParent };
    }
    const within = { ...state, ...placedParent };
    if (leftOut[place]! > 0) return { ...within, type: 'atomic' };
    return { ...within, ...(initial !== undefined && { initial: placed(initial) }) };
  });
  return {
    chart: {
      ...chart,
      states,
      transitions: chart.transitions.map((transition) => betweenVisibleStates(transition, placed)),
    },
    numbers: shown.map((number) => (number === rest ? undefined : number)),
    leftOut,
  };
}

/** The states of a long row that are connected with one of them by few transitions; `undefined` for a short row. */
function nearIn(chart: Statechart, near: number): ReadonlySet<number> | undefined {
  const row = siblingsOf(chart, near);
  if (row.length <= longRow) return undefined;
  const inRow = (number: number | undefined): number | undefined =>
    number === undefined || row.includes(number) ? number : inRow(chart.states[number]!.parent);
  const ways = chart.transitions.flatMap(({ source, targets }) =>
    targets.map((target) => [inRow(source), inRow(target)] as const),
  );
  const found = new Set([near]);
  for (const from of found) {
    // Targets first, because they are more useful than sources.
    const next = ways.flatMap(([source, target]) => (source === from && target !== undefined ? [target] : []));
    const sources = ways.flatMap(([source, target]) => (target === from && source !== undefined ? [source] : []));
    for (const other of [...next, ...sources]) if (found.size < keptOfRow) found.add(other);
    if (found.size >= keptOfRow) break;
  }
  return found;
}

/** The states of the row of a state, including itself. */
export function siblingsOf({ states }: Statechart, number: number): number[] {
  const { parent } = states[number]!;
  return states.flatMap((state, sibling) => (state.parent === parent ? [sibling] : []));
}

/** The states that must be open to show these states. */
export function openFor(chart: Statechart, leaves: readonly number[]): number[] {
  return [...new Set(leaves.flatMap((leaf) => ancestorsOf(chart, leaf)))].filter((number) => number !== 0);
}

function placeholderOf(row: string, count: number): Pick<StatechartState, 'path' | 'type'> {
  const name = `… ${count} more`;
  return { path: row === '' ? name : `${row}.${name}`, type: 'atomic' };
}

/** Moves ends inside folded states to those states, and drops transitions from a box to itself. */
function betweenVisibleStates(
  transition: StatechartTransition,
  placed: (number: number) => number,
): StatechartTransition {
  const { actions: _, ...rest } = transition;
  const source = placed(transition.source);
  const targets = [...new Set(transition.targets.map(placed))].filter((target) => target !== source);
  return { ...rest, source, targets };
}
