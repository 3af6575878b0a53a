/** A killed agent leaves its Envoys running, and the next agent of the container adopts them (LIVE_RESTORE). */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { respondingBootstrap } from '../fixtures/responding-bootstrap.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { type ContainedAgent, endOf, envoysIn, readyAgent } from '../harness/contained-agent.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';
import { startLoad } from '../load/load-process.ts';
import { formatReport } from '../load/report.ts';

const env = { LIVE_RESTORE: 'true' };
const { kills } = sized({ short: { kills: 2 }, full: { kills: 40 } });

/** The agent's process: the first child that runs Node. */
const agentIn = ({ container }: ContainedAgent): number | undefined => container.agents()[0];

async function killAgent(agent: ContainedAgent): Promise<void> {
  const killed = agentIn(agent)!;
  process.kill(killed, 'SIGKILL');
  await eventually('there is another agent', () => ![undefined, killed].includes(agentIn(agent)), { everyMs: 5 });
}

/** Files left in the run directory for the next agent. */
const restoreFiles = ({ container }: ContainedAgent): string[] =>
  readdirSync(join(container.cwd, 'run')).filter((name) => name.startsWith('live-restore'));

test('the successor of a killed agent keeps its Envoy, hot restarts it, and stops it gracefully', async () => {
  const agent = await readyAgent([], { env });
  const envoys = envoysIn(agent);
  await killAgent(agent);
  await eventually('the next agent is ready', agent.ready, { everyMs: 10 });
  expect(envoysIn(agent)).toEqual(envoys);
  expect(linesOf(agent.container.program.lines, 'epochs.adopted.orphaned', { epochs: 'epoch-0' })).not.toEqual([]);
  agent.container.signal('SIGHUP');
  await agent.container.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
  await agent.container.hasNoZombie();
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
  expect(restoreFiles(agent)).toEqual([]);
  const { code, output } = await checkTraces([join(agent.container.cwd, 'agent.trace')]);
  expect(code, output).toBe(0);
});

test(`${kills} kills of the agent at any moment of hot restarts fail no request`, async () => {
  const [port = 0] = await freePorts(1);
  const agent = await readyAgent(['--drainDuration', '1s', '--parentShutdownDuration', '3s'], {
    env,
    bootstrap: (folder, adminPort) => respondingBootstrap(folder, adminPort, port),
  });
  const load = await startLoad({
    target: { host: '127.0.0.1', port, authority: 'localhost' },
    clients: [
      { kind: 'ka', count: 1, pauseMs: sized({ short: 20, full: 5 }) },
      { kind: 'slow', count: 2, pauseMs: 700 },
      { kind: 'new', count: 1, pauseMs: sized({ short: 20, full: 10 }) },
    ],
    maxDurationMs: 380_000,
  });
  onTestFinished(() => load.kill());
  const outages: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    agent.container.signal('SIGHUP');
    await sleep((kill * 137) % 900);
    const killedAt = performance.now();
    await killAgent(agent);
    await eventually('the next agent answers', () => agent.responds(), { everyMs: 5 });
    outages.push(Math.round(performance.now() - killedAt));
    await sleep(500);
  }
  await eventually('the last agent is ready', agent.ready);
  const report = await load.stop();
  console.log(`${kills} kills; the status port was back after ${outages.join(', ')} ms\n${formatReport(report)}`);
  expect(report.failed, formatReport(report)).toBe(0);
  expect(report.total).toBeGreaterThan(50);
  await eventually('one Envoy is left', () => envoysIn(agent).length === 1);
  await agent.container.hasNoZombie();
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
});

/** The newest Envoy in the agents' record. */
const newestIn = ({ container }: ContainedAgent): { name: string; phase: string; pid: number } | undefined => {
  const [directory] = readdirSync(join(container.cwd, 'run')).filter((name) => name.startsWith('live-restore'));
  const record = directory === undefined ? undefined : join(container.cwd, 'run', directory, 'record.json');
  return record === undefined ? undefined : JSON.parse(readFileSync(record, 'utf8')).knowledge.epochs.at(-1);
};

test.each([
  { phase: 'starting', killed: true, fate: 'its successor resumes' },
  { phase: 'live', killed: true, fate: 'its successor resumes' },
  { phase: 'starting', killed: false, fate: 'resumes' },
  { phase: 'live', killed: false, fate: 'resumes' },
])(
  'no request fails if the agent is suspended while its new Envoy is $phase, and $fate after the parent has exited',
  async ({ phase, killed }) => {
    const [port = 0] = await freePorts(1);
    const agent = await readyAgent(['--drainDuration', '1s', '--parentShutdownDuration', '2s'], {
      env,
      bootstrap: (folder, adminPort) => respondingBootstrap(folder, adminPort, port),
    });
    const load = await startLoad({
      target: { host: '127.0.0.1', port, authority: 'localhost' },
      clients: [
        { kind: 'ka', count: 1, pauseMs: sized({ short: 20, full: 5 }) },
        { kind: 'new', count: 1, pauseMs: sized({ short: 20, full: 10 }) },
      ],
      maxDurationMs: 60_000,
    });
    onTestFinished(() => load.kill());
    const [parent] = envoysIn(agent);
    let sleeper = agentIn(agent)!;
    agent.container.signal('SIGHUP');
    await eventually(
      `epoch 1 is ${phase}`,
      () => {
        const { name, pid, phase: reachedPhase } = newestIn(agent) ?? {};
        // On a busy machine, the test may see the phase `live` first.
        return name === 'epoch-1' && pid !== 0 && (reachedPhase === phase || reachedPhase === 'live');
      },
      { everyMs: 0.5 },
    );
    process.kill(sleeper, 'SIGSTOP');
    if (killed) {
      process.kill(sleeper, 'SIGKILL');
      const next = () => {
        const pid = agentIn(agent);
        return pid !== sleeper && pid;
      };
      sleeper = await eventually('there is another agent', next, { everyMs: 1 });
      process.kill(sleeper, 'SIGSTOP');
    }
    await eventually('the parent has left', () => envoysIn(agent).length === 1 && !envoysIn(agent).includes(parent!));
    const [child] = envoysIn(agent);
    process.kill(sleeper, 'SIGCONT');
    await eventually('the agent is ready', agent.ready);
    // Waits longer than a full restart takes.
    await sleep(2_000);
    const report = await load.stop();
    expect(report.failed, formatReport(report)).toBe(0);
    expect(envoysIn(agent)).toEqual([child]);
  },
);

test('the next agent drains and stops running Envoys if SIGTERM arrives while no agent runs', async () => {
  const agent = await readyAgent([], { env });
  const killed = agentIn(agent)!;
  process.kill(killed, 'SIGKILL');
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
});

test('the next agent replaces an Envoy that exited while no agent was running', async () => {
  const agent = await readyAgent([], { env });
  const [envoy] = envoysIn(agent);
  process.kill(agentIn(agent)!, 'SIGKILL');
  process.kill(envoy!, 'SIGKILL');
  await eventually('another Envoy serves', async () => (await agent.ready()) && !envoysIn(agent).includes(envoy!));
});

test('an agent ignores an invalid record, kills the running Envoy, and starts a new one', async () => {
  const agent = await readyAgent([], { env });
  const [envoy] = envoysIn(agent);
  const record = join(agent.container.cwd, 'run', restoreFiles(agent)[0]!, 'record.json');
  expect(JSON.parse(readFileSync(record, 'utf8'))).toMatchObject({ format: 3 });
  process.kill(agentIn(agent)!, 'SIGSTOP');
  writeFileSync(record, '{"format": 3, "baseIds": [');
  process.kill(agentIn(agent)!, 'SIGKILL');
  await eventually('another Envoy serves', async () => (await agent.ready()) && !envoysIn(agent).includes(envoy!));
  expect(envoysIn(agent)).toHaveLength(1);
});

test('a container stops with its agent if LIVE_RESTORE is off', async () => {
  const agent = await readyAgent();
  process.kill(agentIn(agent)!, 'SIGKILL');
  expect(await endOf(agent)).toEqual({ code: 137, signal: null });
  expect(existsSync(join(agent.container.cwd, 'run')) ? restoreFiles(agent) : []).toEqual([]);
});
