/** Every state of a chart whose changes an operator reads has a word. */
import { expect, test } from 'vitest';
import { agentMachine } from '../machines/agent/agent.machine.ts';
import { epochMachine } from '../machines/agent/envoy/epoch.machine.ts';
import { supervisorMachine } from '../machines/agent/envoy/supervisor.machine.ts';
import { eventCatalogue as agentCatalogue } from '../machines/agent/event-catalogue.ts';
import { discoveryMachine } from '../machines/discovery/discovery.machine.ts';
import { eventCatalogue as discoveryCatalogue } from '../machines/discovery/event-catalogue.ts';
import { agentStates } from '../src/agent/status/agent-states.ts';
import { discoveryStates } from '../src/discovery/monitor/discovery-states.ts';
import { wordOf } from '../src/runtime/actors/log-records.ts';

interface Node {
  readonly states: Readonly<Record<string, Node>>;
}

function leaves({ states }: Node, path = ''): string[] {
  const children = Object.entries(states);
  if (children.length === 0) return [path];
  return children.flatMap(([name, child]) => leaves(child, path === '' ? name : `${path}.${name}`));
}

/** Events that a chart raises for itself are in no catalogue. */
const raised = (root: { readonly events: readonly string[] }): readonly string[] => root.events;

const charts = [
  ['agent', agentStates, agentMachine.root],
  ['supervisor', agentStates, supervisorMachine.root],
  ['epoch', agentStates, epochMachine.root],
  ['discovery', discoveryStates, discoveryMachine.root],
] as const;

test.each(charts)('each state of %s has a word, and each word is of a state that exists', (chart, { words }, root) => {
  const table = words[chart]!;
  const paths = leaves(root);
  expect(paths.filter((path) => wordOf(table, path) === undefined)).toEqual([]);
  const isPath = (beginning: string): boolean =>
    paths.some((path) => path === beginning || path.startsWith(`${beginning}.`));
  expect(Object.keys(table).filter((beginning) => !isPath(beginning))).toEqual([]);
});

test.each([
  ['agent', agentStates, agentCatalogue, raised(supervisorMachine.root)],
  ['discovery', discoveryStates, discoveryCatalogue, []],
] as const)(
  'each cause in the words of %s is an event of its protocols',
  (_, { causes, alarming, words }, catalogue, own) => {
    const types = new Set([...catalogue.map(({ type }) => type), ...own]);
    expect(Object.keys(causes).filter((type) => !types.has(type))).toEqual([]);
    const all = Object.values(words).flatMap((table) => Object.values(table));
    expect(alarming.filter((word) => !all.includes(word))).toEqual([]);
  },
);
