/**
 * Every state handles, or explicitly ignores (`'event.type': {}`), every event that its peers may send. Otherwise an
 * event at an unexpected moment is lost silently.
 */
import { describe, expect, test } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { startLimiterMachine } from '../../machines/agent/envoy/start-limiter.machine.ts';
import { eventCatalogue } from '../../machines/agent/event-catalogue.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { statusMachine } from '../../machines/agent/status/status.machine.ts';
import { xdsStreamMachine } from '../../machines/agent/xds/xds-stream.machine.ts';
import { handledTypes, leafStates } from './chart.ts';

/** Results of orders, which arrive in the state that issued the order. */
const lateOnly: Readonly<Record<string, readonly string[]>> = { agent: ['status.listening'] };

const machines: readonly AnyStateMachine[] = [
  agentMachine,
  epochMachine,
  certWatcherMachine,
  statusMachine,
  startLimiterMachine,
  xdsStreamMachine,
];

/**
 * Events that peers may send at any time; for the supervisor, its table (docs/state-tables.md) and the explorer list them. Excludes reports of
 * effects and of actors that live in one state: they arrive only in states that invoke them.
 */
function sentAnytimeTo(actor: string): string[] {
  const sentEvents = eventCatalogue.filter(
    ({ type, from, to }) => type.includes('.') && to.replace('-N', '') === actor && !from.startsWith(`${to}/`),
  );
  return [...new Set(sentEvents.map(({ type }) => type))].filter((type) => !(lateOnly[actor] ?? []).includes(type));
}
/** A state that is exited in the same step in which it is entered receives nothing. */
const isTransient = (node: AnyStateNode): boolean => (node.always ?? []).some((t) => t.guard === undefined);

describe.each(machines.map((machine) => [machine.id, machine, sentAnytimeTo(machine.id)] as const))(
  '%s',
  (_, machine, events) => {
    test('receives events at any time', () => expect(events).not.toEqual([]));

    test.each(
      leafStates(machine.root)
        .filter((node) => !isTransient(node))
        .map((node) => [node.path.join('.'), node] as const),
    )('handles or ignores each event in state "%s"', (_path, node) => {
      const spoken = handledTypes(node);
      expect(events.filter((type) => !spoken.has(type))).toEqual([]);
    });
  },
);
