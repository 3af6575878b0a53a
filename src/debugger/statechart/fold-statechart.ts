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

/** A longer row is shortened. */
export const longRow = 9;
/** Includes the state in the centre of the row. */
const maxKeptOfRow = 7;

/**
 * @param openStates states whose children are shown
 * @param nearState distant states of its long row are merged into one box
 */
export function foldStatechart(
  chart: Statechart,
  openStates: ReadonlySet<number>,
  nearState?: number,
): FoldedStatechart {
  const nearbyStates = nearState === undefined ? undefined : nearStatesOf(chart, nearState);
  const row = nearState === undefined ? undefined : chart.states[nearState]?.parent;
  /** By state: the state that is drawn for it, which is the state itself or the one that it is folded into. */
  const drawnStateByState: number[] = [];
  let placeholderState: number | undefined;
  chart.states.forEach(({ parent }, number) => {
    if (parent === undefined) drawnStateByState[number] = number;
    else if (drawnStateByState[parent] !== parent) drawnStateByState[number] = drawnStateByState[parent]!;
    else if (parent !== 0 && !openStates.has(parent)) drawnStateByState[number] = parent;
    else if (parent === row && nearbyStates?.has(number) === false)
      drawnStateByState[number] = placeholderState ??= number;
    else drawnStateByState[number] = number;
  });
  const drawnStates = chart.states.flatMap((_, number) => (drawnStateByState[number] === number ? [number] : []));
  const placeOf = new Map(drawnStates.map((number, stateIndex) => [number, stateIndex]));
  const placeOfState = (number: number): number => placeOf.get(drawnStateByState[number]!)!;
  const omittedCounts = drawnStates.map(
    (number) =>
      drawnStateByState.filter((drawnState, ownNumber) => drawnState === number && ownNumber !== number).length,
  );
  const states = drawnStates.map((number, stateIndex): StatechartState => {
    const { parent, initial, ...state } = chart.states[number]!;
    const placedParent = parent !== undefined && { parent: placeOfState(parent) };
    if (number === placeholderState) {
      const count = drawnStateByState.filter((drawnState) => drawnState === number).length;
      return { ...placeholderOf(chart.states[parent!]!.path, count), ...placedParent };
    }
    const placedState = { ...state, ...placedParent };
    if (omittedCounts[stateIndex]! > 0) return { ...placedState, type: 'atomic' };
    return { ...placedState, ...(initial !== undefined && { initial: placeOfState(initial) }) };
  });
  return {
    chart: {
      ...chart,
      states,
      transitions: chart.transitions.map((transition) => betweenVisibleStates(transition, placeOfState)),
    },
    numbers: drawnStates.map((number) => (number === placeholderState ? undefined : number)),
    leftOut: omittedCounts,
  };
}

/** The states of a long row that few transitions connect with `nearState`; `undefined` for a short row. */
function nearStatesOf(chart: Statechart, nearState: number): ReadonlySet<number> | undefined {
  const row = siblingsOf(chart, nearState);
  if (row.length <= longRow) return undefined;
  const inRow = (number: number | undefined): number | undefined =>
    number === undefined || row.includes(number) ? number : inRow(chart.states[number]!.parent);
  const stateConnections = chart.transitions.flatMap(({ source, targets }) =>
    targets.map((target) => [inRow(source), inRow(target)] as const),
  );
  const nearStates = new Set([nearState]);
  for (const from of nearStates) {
    // Targets first, because they are more useful than sources.
    const nextStates = stateConnections.flatMap(([source, target]) =>
      source === from && target !== undefined ? [target] : [],
    );
    const sources = stateConnections.flatMap(([source, target]) =>
      target === from && source !== undefined ? [source] : [],
    );
    for (const neighbour of [...nextStates, ...sources]) if (nearStates.size < maxKeptOfRow) nearStates.add(neighbour);
    if (nearStates.size >= maxKeptOfRow) break;
  }
  return nearStates;
}

/** Includes the state itself. */
export function siblingsOf({ states }: Statechart, number: number): number[] {
  const { parent } = states[number]!;
  return states.flatMap((state, sibling) => (state.parent === parent ? [sibling] : []));
}

export function openStatesFor(chart: Statechart, leaves: readonly number[]): number[] {
  return [...new Set(leaves.flatMap((leaf) => ancestorsOf(chart, leaf)))].filter((number) => number !== 0);
}

function placeholderOf(row: string, count: number): Pick<StatechartState, 'path' | 'type'> {
  const name = `… ${count} more`;
  return { path: row === '' ? name : `${row}.${name}`, type: 'atomic' };
}

/** Transitions from a box to itself are dropped. */
function betweenVisibleStates(
  transition: StatechartTransition,
  placeOfState: (number: number) => number,
): StatechartTransition {
  const { actions: _, ...otherFields } = transition;
  const source = placeOfState(transition.source);
  const targets = [...new Set(transition.targets.map(placeOfState))].filter((target) => target !== source);
  return { ...otherFields, source, targets };
}
