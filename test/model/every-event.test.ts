/**
 * design.md, rule 7 for machines: every state handles, or says that it ignores (`'event.type': {}`), every event that its
 * peers may send it. Else an event that comes at an unforeseen moment is lost without a word.
 */
import { describe, expect, test } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { certWatcherMachine } from '../../machines/agent/cert-watcher.machine.ts';
import { epochMachine } from '../../machines/agent/epoch.machine.ts';
import { startLimiterMachine } from '../../machines/agent/start-limiter.machine.ts';
import { statusMachine } from '../../machines/agent/status.machine.ts';
import { leaves, spokenOf } from './chart.ts';

/**
 * What peers may send at any time; for the supervisor it is its table (docs/state-tables.md) and the explorer. An effect's reports are left out: it
 * lives only in the states that invoke it.
 */
const peers: [AnyStateMachine, string[]][] = [
  [agentMachine, ['signal.received', 'status.failed', 'quit.requested', 'restart.decided', 'restart.ended']],
  [
    epochMachine,
    [
      'epoch.supersede',
      'epoch.retire',
      'epoch.dismiss',
      'epoch.drain',
      'epoch.terminate',
      'epoch.abort',
      'logs.reopen',
    ],
  ],
  [certWatcherMachine, ['watch.start']],
  [
    statusMachine,
    ['status.start', 'status.drain', 'serving.began', 'serving.ended', 'handover.began', 'handover.ended'],
  ],
  [startLimiterMachine, ['start.request', 'start.withdraw']],
];

/** A state that is left in the same step in which it is entered receives nothing. */
const isTransient = (node: AnyStateNode): boolean => (node.always ?? []).some((t) => t.guard === undefined);

describe.each(peers.map(([machine, events]) => [machine.id, machine, events] as const))('%s', (_, machine, events) => {
  test.each(
    leaves(machine.root)
      .filter((node) => !isTransient(node))
      .map((node) => [node.path.join('.'), node] as const),
  )('in "%s"', (_path, node) => {
    const spoken = spokenOf(node);
    expect(events.filter((type) => !spoken.has(type))).toEqual([]);
  });
});
