/** The dependencies of the charts. */
import { describe, expect, test } from 'vitest';
import { type AnyActorLogic, type AnyStateMachine, createActor, StateMachine } from 'xstate';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { epochMachine } from '../../../machines/agent/envoy/epoch.machine.ts';
import { supervisorMachine } from '../../../machines/agent/envoy/supervisor.machine.ts';
import { certWatcherMachine } from '../../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../../machines/agent/files/directory-watch.machine.ts';
import { defaultSettings } from '../../../machines/agent/settings.ts';
import { statusMachine } from '../../../machines/agent/status/status.machine.ts';

const machines: AnyStateMachine[] = [
  agentMachine,
  supervisorMachine,
  epochMachine,
  certWatcherMachine,
  directoryWatchMachine,
  statusMachine,
];

describe.each(machines.map((machine) => [machine.id, machine] as const))('%s', (_, machine) => {
  const effects = Object.entries(machine.implementations.actors as Record<string, AnyActorLogic>).filter(
    ([, logic]) => !(logic instanceof StateMachine),
  );

  test.each(effects)('fails without the effect %s, and the error names the effect', async (name, logic) => {
    const error = await new Promise((resolve) => {
      const actor = createActor(logic, { input: {} });
      actor.subscribe({ error: resolve });
      actor.start();
    });
    expect(error).toEqual(new Error(`effect ${name} was not provided`));
  });
});

test('an agent with default settings uses hot restarts, retries, stops after a fixed time, and watches nothing', () => {
  expect(defaultSettings).toMatchObject({
    restartPolicy: 'retry',
    hotRestart: true,
    exitOnZeroActiveConnections: false,
    watch: { directories: [], requiredFiles: [] },
  });
});
