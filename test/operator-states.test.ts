/** Every state that a chart shows to operators has a word. */
import { expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { agentMachine } from '../machines/agent/agent.machine.ts';
import { epochMachine } from '../machines/agent/envoy/epoch.machine.ts';
import { supervisorMachine } from '../machines/agent/envoy/supervisor.machine.ts';
import { eventCatalogue as agentCatalogue } from '../machines/agent/event-catalogue.ts';
import { discoveryMachine } from '../machines/discovery/discovery.machine.ts';
import { eventCatalogue as discoveryCatalogue } from '../machines/discovery/event-catalogue.ts';
import { agentStates } from '../src/agent/status/agent-states.ts';
import { discoveryStates } from '../src/discovery/monitor/discovery-states.ts';
import { describeCause, type OperatorStates, stateLabelOf } from '../src/runtime/actors/log-records.ts';

interface Node {
  readonly states: Readonly<Record<string, Node>>;
}

function leaves({ states }: Node, path = ''): string[] {
  const children = Object.entries(states);
  if (children.length === 0) return [path];
  return children.flatMap(([name, child]) => leaves(child, path === '' ? name : `${path}.${name}`));
}

/** Events that a chart raises itself are in no catalogue. */
const raised = (root: { readonly events: readonly string[] }): readonly string[] => root.events;

const charts = [
  ['agent', agentStates, agentMachine.root],
  ['supervisor', agentStates, supervisorMachine.root],
  ['epoch', agentStates, epochMachine.root],
  ['discovery', discoveryStates, discoveryMachine.root],
] as const;

/** Causes of a chart's transitions that change its word for operators. */
function causesOf(chart: string, { words }: OperatorStates, root: Node): string[] {
  const table = words[chart]!;
  const pathOf = ({ path }: AnyStateNode): string => path.join('.');
  const wordsBelow = (node: AnyStateNode): Set<string> => {
    const children = Object.values(node.states) as AnyStateNode[];
    const initial = stateLabelOf(table, pathOf(node));
    const raisedEvents = children.length === 0 && typeof initial === 'string' ? [initial] : [];
    return new Set([...raisedEvents, ...children.flatMap((child) => [...wordsBelow(child)])]);
  };
  const visit = (node: AnyStateNode): string[] => [
    ...[...node.transitions.values()].flat().flatMap(({ eventType, target }) => {
      const from = wordsBelow(node);
      const to = (target ?? []).flatMap((targetNode) => [...wordsBelow(targetNode)]);
      return to.some((operatorState) => [...from].some((other) => other !== operatorState))
        ? [describeCause(eventType)]
        : [];
    }),
    ...(Object.values(node.states) as AnyStateNode[]).flatMap(visit),
  ];
  return [...new Set(visit(root as AnyStateNode))].sort();
}

test.each(charts)(
  'each state of %s has an operator term, and each term belongs to an existing state',
  (chart, { words }, root) => {
    const table = words[chart]!;
    const paths = leaves(root);
    expect(paths.filter((path) => stateLabelOf(table, path) === undefined)).toEqual([]);
    const isPath = (beginning: string): boolean =>
      paths.some((path) => path === beginning || path.startsWith(`${beginning}.`));
    expect(Object.keys(table).filter((beginning) => !isPath(beginning))).toEqual([]);
  },
);

test.each([
  ['agent', agentStates, agentCatalogue, raised(supervisorMachine.root)],
  ['discovery', discoveryStates, discoveryCatalogue, []],
] as const)(
  "each cause in the states of %s is an event of the machine's protocols",
  (_, { causes, alarming, words }, catalogue, raisedEvents) => {
    const runtimeCauses = charts.flatMap(([chart, states, root]) =>
      states.causes === causes ? causesOf(chart, states, root) : [],
    );
    const types = new Set([...catalogue.map(({ type }) => type), ...raisedEvents, ...runtimeCauses]);
    expect(Object.keys(causes).filter((type) => !types.has(type))).toEqual([]);
    const all = Object.values(words).flatMap((table) => Object.values(table));
    expect(alarming.filter((operatorState) => !all.includes(operatorState))).toEqual([]);
  },
);

test.each(charts)('each cause of a state change of %s has a description', (chart, states, root) => {
  const causes = causesOf(chart, states, root);
  // The cause contains the name of the failed component.
  expect(causes.filter((cause) => !cause.endsWith(' failed') && !Object.hasOwn(states.causes, cause))).toEqual([]);
});
