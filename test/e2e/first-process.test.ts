/** bin/pilot-agent as the first process of a container: it reaps, forwards signals, and exits with the agent's exit code. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { countSentEvents } from '../harness/check-traces.ts';
import { endOf, envoysIn, readyAgent, startAgent } from '../harness/contained-agent.ts';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';

test("the launcher reaps all orphaned processes, but leaves the agent's exit to the agent’s own handler", async () => {
  const { container } = await readyAgent();
  const orphans = 30;
  const script = `for i in $(seq ${orphans}); do (sleep 4; exit $i) >/dev/null 2>&1 & done`;
  await container.exec('sh', '-c', script).exited;
  await eventually('there were orphans', () => container.children().length > orphans / 2, { everyMs: 5 });
  await sleep(500);
  await eventually('the agent is the only child left', () => container.children().length === 1);
  expect(container.program.exit).toBeUndefined();
  container.signal('SIGTERM');
  expect(await container.ended()).toEqual({ code: 0, signal: null });
});

describe('SIGTERM', () => {
  const delays = sized({ short: [0, 100, 1_000], full: [0, 5, 20, 50, 100, 200, 300, 400, 600, 1_000] });

  test.each(delays)('ends the launcher with exit code 0 if sent %i ms after its start', async (delayMs) => {
    const agent = await startAgent();
    await sleep(delayMs);
    agent.container.signal('SIGTERM');
    expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  });

  test('ends the launcher with exit code 0 if every process sends it in the first milliseconds', async () => {
    for (let delayMs = 0; delayMs < 30; delayMs += sized({ short: 10, full: 2 })) {
      const agent = await startAgent();
      await sleep(delayMs);
      agent.container.signal('SIGTERM');
      expect(await endOf(agent), `${delayMs} ms`).toEqual({ code: 0, signal: null });
    }
  });

  test('ends the agent immediately if it arrives a second time', async () => {
    const agent = await readyAgent(['--terminationDrainDuration', '60s']);
    agent.container.signal('SIGTERM');
    await sleep(500);
    expect(agent.container.program.exit).toBeUndefined();
    agent.container.signal('SIGTERM');
    expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  });
});

test('the launcher reports a missing /proc and exits with 255', async () => {
  const agent = await startAgent([], { prepare: ['mount -t tmpfs none /proc'] });
  expect(await endOf(agent)).toEqual({ code: 255, signal: null });
  const { lines } = agent.container.program;
  expect(lines.filter((line) => line.includes('/proc'))).toEqual([
    expect.stringMatching(/^pilot-agent: .*\/proc\/net\/unix/),
    expect.stringContaining('Mount /proc'),
  ]);
});

describe('other signals to the launcher', () => {
  test.each(['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)(
    '%s during the start does not end the launcher',
    async (signal) => {
      const agent = await startAgent();
      for (let sentCount = 0; sentCount < 40; sentCount++) {
        agent.container.signal(signal);
        await sleep(10);
      }
      await eventually('the agent is ready', agent.ready, { hopeless: () => agent.container.program.hopeless() });
      agent.container.signal('SIGTERM');
      expect(await endOf(agent)).toEqual({ code: 0, signal: null });
    },
  );

  test('SIGUSR1 does not reach an Envoy that has no handler yet and would be killed', async () => {
    const agent = await startAgent();
    await eventually(
      'the agent is ready',
      async () => {
        agent.container.signal('SIGUSR1');
        return await agent.ready();
      },
      { everyMs: 3, hopeless: () => agent.container.program.hopeless() },
    );
    expect(countSentEvents(join(agent.container.cwd, 'agent.trace'), 'epoch.failed')).toBe(0);
  });

  test('SIGHUP, SIGUSR1 and SIGUSR2 reach the agent, and SIGHUP restarts Envoy', async () => {
    const agent = await readyAgent();
    const sentSignals = ['SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const;
    for (const [index, signal] of sentSignals.entries()) {
      agent.container.signal(signal);
      await eventually(`${signal} reaches the agent`, () => agent.signals().length > index);
    }
    expect(agent.signals()).toEqual(sentSignals);
    await agent.container.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
    await eventually('the agent is ready', agent.ready);
  });

  test.each(['SIGINT', 'SIGQUIT'] as const)('%s ends the launcher as SIGTERM does', async (signal) => {
    const agent = await readyAgent();
    agent.container.signal(signal);
    expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  });

  test.each(['SIGINT', 'SIGQUIT'] as const)(
    '%s from a terminal reaches launcher and agent, but counts only once',
    async (signal) => {
      const agent = await readyAgent(['--terminationDrainDuration', '2s']);
      const signalledAt = performance.now();
      agent.container.signalFromTerminal(signal);
      expect(await endOf(agent)).toEqual({ code: 0, signal: null });
      expect(performance.now() - signalledAt).toBeGreaterThan(1_900);
      expect(agent.signals()).toEqual(['SIGTERM']);
    },
  );

  test('Ctrl-C in the first half second ends the launcher with exit code 0', async () => {
    const agent = await startAgent();
    await sleep(150);
    agent.container.signalFromTerminal('SIGINT');
    expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  });
});

describe('exit code of the launcher', () => {
  test('is 255 after an invalid flag', async () => {
    const agent = await startAgent(['--drainDuration', 'soon']).catch(() => undefined);
    // The agent may exit before the test observes it, or shortly after.
    if (agent !== undefined) expect(await endOf(agent)).toEqual({ code: 255, signal: null });
  });

  test('is 1 if Envoy fails permanently', async () => {
    // Accepts every bootstrap in validation, and exits when it must serve.
    const program = '#!/bin/sh\\ncase "$*" in *validate*) exit 0 ;; esac\\nexit 1\\n';
    const file = '$FOLDER/rw/envoy';
    const agent = await startAgent(['--restartPolicy', 'exit', '--binaryPath', file], {
      prepare: [`printf '${program}' >${file}`, `chmod +x ${file}`],
    });
    expect(await endOf(agent)).toEqual({ code: 1, signal: null });
  });

  test('is 137 if the agent is killed, and no Envoy remains', async () => {
    const agent = await readyAgent();
    const [node] = agent.container.children();
    expect(envoysIn(agent)).toHaveLength(1);
    process.kill(node!.pid, 'SIGKILL');
    expect(await endOf(agent)).toEqual({ code: 137, signal: null });
    expect(envoysIn(agent)).toEqual([]);
  });

  test('the agent and its Envoy exit when the launcher is killed', async () => {
    const agent = await readyAgent();
    expect(envoysIn(agent)).toHaveLength(1);
    process.kill(agent.container.pid, 'SIGKILL');
    await agent.container.ended();
    expect(envoysIn(agent)).toEqual([]);
  });
});
