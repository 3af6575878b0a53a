import type { AnyStateMachine } from 'xstate';
import {
  itemsCoveredByStart,
  type SelectedRun,
  selectRuns,
  wasNodeActive,
  whyNeverEntered,
  whyUncovered,
} from './cover.ts';
import { MachineRun } from './machine-run.ts';
import type { Samples } from './samples.ts';
import { withStandIns } from './stand-ins.ts';
import { type Cover, type Coverage, type GeneratedTest, type Suite, stepLabel, suiteVersion } from './suite.ts';
import { nodeName, type Targets, targetsOf } from './targets.ts';
import { type Edge, type Walk, walk } from './walk.ts';

export interface GenerateOptions {
  readonly cover: Cover;
  /** Maximum number of explored configurations, and of paths. */
  readonly limit: number;
  readonly depth: number;
}

export const defaultLimit = 1_000;
export const defaultDepth = 30;
/** The number of paths grows exponentially with their length. */
export const defaultPathDepth = 8;

/** @throws Error if the machine fails at its start */
export function generate(
  machine: AnyStateMachine,
  samples: Samples,
  options: GenerateOptions,
  source: { readonly source: string; readonly export: string },
): Suite {
  const isolatedMachine = withStandIns(machine);
  const targets = targetsOf(isolatedMachine);
  const completedWalk = walk(isolatedMachine, samples, {
    configurations: options.limit,
    depth: options.depth,
    ...(options.cover === 'states' && { enough: stopWhenEntered(targets) }),
  });
  const { chosenRuns: candidates, bounds } = selectRuns(completedWalk, targets, options.cover, options.limit);
  // Omits runs whose result depends on data that `relevant` omits, such as names in events.
  const repeatableRuns = candidates.filter((run) => isRepeatable(isolatedMachine, completedWalk, run));
  const droppedCount = candidates.length - repeatableRuns.length;
  const omittedPathsText = `${droppedCount} paths are omitted: their result depends on data that \`relevant\` of the samples omits`;
  return {
    format: 'chartpilot-tests',
    version: suiteVersion,
    machine: { id: machine.id, ...source },
    cover: options.cover,
    starts: completedWalk.starts.map(({ input, expect }) => ({ ...(input !== undefined && { input }), expect })),
    tests: repeatableRuns.map(generatedTest),
    coverage: coverageOf(completedWalk, targets, repeatableRuns, [
      ...bounds,
      ...(droppedCount > 0 ? [omittedPathsText] : []),
    ]),
  };
}

function isRepeatable(machine: AnyStateMachine, { starts }: Walk, { edges }: SelectedRun): boolean {
  const run = new MachineRun(machine, starts[edges[0]!.from.start]!.input);
  try {
    return edges.every(({ step, expect }) => {
      run.runStep(step);
      return JSON.stringify(run.outcome()) === JSON.stringify(expect);
    });
  } catch {
    return false;
  }
}

function stopWhenEntered({ states }: Targets): (edge: Edge) => boolean {
  const unvisitedStates = new Set(states);
  return ({ activeNodes }) => {
    for (const node of activeNodes) unvisitedStates.delete(node);
    return unvisitedStates.size === 0;
  };
}

function generatedTest({ edges, covers }: SelectedRun, index: number): GeneratedTest {
  const subject = covers[0] ?? stepLabel(edges.at(-1)!.step);
  const omittedText = covers.length > 1 ? ` and ${covers.length - 1} more` : '';
  return {
    name: `${index + 1}. ${subject}${omittedText}`,
    start: edges[0]!.from.start,
    steps: edges.map(({ step, expect }) => ({ do: step, expect })),
  };
}

function coverageOf(
  completedWalk: Walk,
  targets: Targets,
  selectedRuns: readonly SelectedRun[],
  bounds: readonly string[],
): Coverage {
  const edges = selectedRuns.flatMap((run) => run.edges);
  const coveredItems = new Set<unknown>([
    ...itemsCoveredByStart(completedWalk),
    ...edges.flatMap(({ activeNodes, chosenTransitions }) => [...activeNodes, ...chosenTransitions]),
  ]);
  const states = targets.states.filter((node) => !coveredItems.has(node));
  const transitions = targets.transitions.filter(({ definition }) => !coveredItems.has(definition));
  const refusals = new Set(edges.flatMap(({ rejectedTransitions }) => rejectedTransitions));
  const takenTransitions = new Set<unknown>([
    ...itemsCoveredByStart(completedWalk),
    ...completedWalk.edges.flatMap(({ chosenTransitions }) => chosenTransitions),
  ]);
  const notRequestedText = 'not covered by these tests; use --cover transitions';
  return {
    states: {
      total: targets.states.length,
      covered: targets.states.length - states.length,
      missing: states.map((node) => ({
        what: nodeName(node),
        why: wasNodeActive(completedWalk, node) ? notRequestedText : whyNeverEntered(completedWalk),
      })),
    },
    transitions: {
      total: targets.transitions.length,
      covered: targets.transitions.length - transitions.length,
      missing: transitions.map((target) => ({
        what: target.name,
        why: takenTransitions.has(target.definition)
          ? notRequestedText
          : completedWalk.enough
            ? notRequestedText
            : whyUncovered(completedWalk, target),
      })),
    },
    refusals: refusals.size,
    explored: {
      configurations: completedWalk.configurations.length,
      steps: completedWalk.edges.length,
      depth: Math.max(0, ...completedWalk.edges.map(({ from }) => from.depth + 1)),
      complete: !completedWalk.enough && completedWalk.bounds.length === 0,
    },
    bounds: [...completedWalk.bounds, ...bounds],
    failures: completedWalk.failures,
  };
}
