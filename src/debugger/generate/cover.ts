/** Chooses the runs for tests from all observed runs of a machine. */
import type { AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { matchesDescriptor } from '../../runtime/trace/event-descriptor.ts';
import { type Cover, stepLabel } from './suite.ts';
import { descriptorName, nodeName, type Targets, type TransitionTarget } from './targets.ts';
import { type Configuration, type Edge, edgesLeadingTo, type Walk } from './walk.ts';

export interface SelectedRun {
  readonly edges: readonly Edge[];
  /** Names of the targets that this run covers first. */
  readonly covers: readonly string[];
}

export interface RunSelection {
  readonly chosenRuns: readonly SelectedRun[];
  readonly bounds: readonly string[];
}

/** A string stands for a transition whose guard rejects an event. */
type CoverageItem = AnyStateNode | AnyTransitionDefinition | string;

const refusals = (edge: Edge, names: ReadonlyMap<unknown, string>): string[] =>
  edge.rejectedTransitions.map((definition) => `refused: ${names.get(definition)}`);

/** Selects few short runs that cover all states or transitions, or all runs that visit no configuration twice. */
export function selectRuns(completedWalk: Walk, targets: Targets, cover: Cover, limit: number): RunSelection {
  if (cover === 'paths') return simplePaths(completedWalk, limit);
  const names = new Map<CoverageItem, string>(namedTransitions(targets));
  const coveredBy = (edge: Edge): readonly CoverageItem[] => [
    ...edge.activeNodes,
    ...edge.chosenTransitions,
    ...refusals(edge, names),
  ];
  const uncoveredItems =
    cover === 'states'
      ? new Map<CoverageItem, string>(targets.states.map((node) => [node, nodeName(node)]))
      : new Map(names);
  if (cover === 'transitions') {
    for (const refusal of completedWalk.edges.flatMap((edge) => refusals(edge, names)))
      uncoveredItems.set(refusal, refusal);
  }
  for (const item of itemsCoveredByStart(completedWalk)) uncoveredItems.delete(item);
  return {
    chosenRuns: minimalRuns(shortRuns(completedWalk, uncoveredItems, coveredBy), uncoveredItems, coveredBy),
    bounds: [],
  };
}

const namedTransitions = ({ transitions }: Targets): [CoverageItem, string][] =>
  transitions.map(({ definition, name }) => [definition, name]);

/** Edges are sorted by distance, so the first run is a shortest one. */
function shortRuns(
  completedWalk: Walk,
  uncoveredItems: ReadonlyMap<CoverageItem, string>,
  coveredBy: (edge: Edge) => readonly CoverageItem[],
): Edge[][] {
  const newlyCovered = new Set<CoverageItem>();
  return completedWalk.edges.flatMap((edge) => {
    const newlyCoveredKeys = coveredBy(edge).filter(
      (covered) => uncoveredItems.has(covered) && !newlyCovered.has(covered),
    );
    for (const covered of newlyCoveredKeys) newlyCovered.add(covered);
    return newlyCoveredKeys.length === 0 ? [] : [[...edgesLeadingTo(edge.from), edge]];
  });
}

/** Prefers longer runs, because they also cover the targets of shorter ones. */
function minimalRuns(
  runs: readonly Edge[][],
  uncoveredItems: ReadonlyMap<CoverageItem, string>,
  coveredBy: (edge: Edge) => readonly CoverageItem[],
): SelectedRun[] {
  const uncoveredTargets = new Set(uncoveredItems.keys());
  const chosenRuns = runs
    .toSorted((a, b) => b.length - a.length)
    .flatMap((edges): SelectedRun[] => {
      // The targets of the last edge are the purpose of the run and are listed first.
      const newlyCoveredKeys = [...new Set(edges.toReversed().flatMap(coveredBy))].filter((covered) =>
        uncoveredTargets.has(covered),
      );
      for (const covered of newlyCoveredKeys) uncoveredTargets.delete(covered);
      return newlyCoveredKeys.length === 0
        ? []
        : [{ edges, covers: newlyCoveredKeys.map((covered) => uncoveredItems.get(covered)!) }];
    });
  return chosenRuns.toReversed();
}

/** Depth first. A run is chosen when it cannot be extended, so none is the prefix of another. */
function simplePaths(completedWalk: Walk, limit: number): RunSelection {
  const chosenRuns: SelectedRun[] = [];
  let additionalCount = 0;
  // Edges back to a configuration of the path are not followed.
  const extendPath = (
    configuration: Configuration,
    edges: readonly Edge[],
    visited: ReadonlySet<Configuration>,
  ): void => {
    const nextEdges = configuration.edges.filter(({ to }) => !visited.has(to));
    if (nextEdges.length === 0 && edges.length > 0) {
      if (chosenRuns.length >= limit) additionalCount++;
      else chosenRuns.push({ edges, covers: [edges.map(({ step }) => stepLabel(step)).join(', ')] });
    }
    for (const edge of nextEdges) {
      if (additionalCount >= limit) return;
      extendPath(edge.to, [...edges, edge], new Set([...visited, edge.to]));
    }
  };
  for (const { firstConfiguration } of completedWalk.starts)
    extendPath(firstConfiguration, [], new Set([firstConfiguration]));
  const omittedPaths = additionalCount >= limit ? `at least ${additionalCount} paths` : `${additionalCount} paths`;
  return {
    chosenRuns,
    bounds: additionalCount === 0 ? [] : [`${omittedPaths} after the first ${limit} are omitted (--limit)`],
  };
}

export function whyUncovered(completedWalk: Walk, target: TransitionTarget): string {
  const { source, descriptor, guard } = target;
  const isEntered = wasNodeActive(completedWalk, source);
  if (!isEntered) return `${nodeName(source)} is never entered${limitNote(completedWalk)}`;
  if (descriptor.startsWith('xstate.after.')) {
    return guard === undefined
      ? `another timer or an earlier transition is always taken first${limitNote(completedWalk)}`
      : `its guard is never true when the delay elapses${limitNote(completedWalk)}`;
  }
  const isSent = [...completedWalk.triedEvents].some((triedEvent) => {
    const [id, type] = [triedEvent.slice(0, source.id.length), triedEvent.slice(source.id.length + 1)];
    return id === source.id && matchesDescriptor(type, descriptor);
  });
  if (descriptor !== '' && !isSent) return whyNotSent(descriptor, limitNote(completedWalk));
  return guard === undefined
    ? `another transition with higher priority always takes ${descriptorName(descriptor)}${limitNote(completedWalk)}`
    : `with these samples, ${guard} is never true, or another transition with higher priority takes the event${limitNote(completedWalk)}`;
}

export function whyNeverEntered(completedWalk: Walk): string {
  return `no step leads to it with these samples${limitNote(completedWalk)}`;
}

function whyNotSent(descriptor: string, suggestion: string): string {
  if (/^xstate\.(done|error)\.actor\./.test(descriptor))
    return `no such effect runs there, or it has no such outcome${suggestion}`;
  if (descriptor.startsWith('xstate.done.state.')) return `its final state is never reached${suggestion}`;
  if (descriptor.startsWith('xstate.')) return 'steps of this kind are not generated; add samples of it as an event';
  return `${descriptor} was never sent there; add samples of it${suggestion}`;
}

const limitNote = ({ bounds }: Walk): string => (bounds.length === 0 ? '' : ' (the exploration was limited)');

export function itemsCoveredByStart({ starts }: Walk): (AnyStateNode | AnyTransitionDefinition)[] {
  return starts.flatMap(({ activeNodes, chosenTransitions }) => [...activeNodes, ...chosenTransitions]);
}

export function wasNodeActive({ starts, edges }: Walk, node: AnyStateNode): boolean {
  return (
    starts.some(({ activeNodes }) => activeNodes.includes(node)) ||
    edges.some(({ activeNodes }) => activeNodes.includes(node))
  );
}
