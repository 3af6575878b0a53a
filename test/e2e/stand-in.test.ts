/**
 * The real agent with a stand-in for Envoy, which does on command what a real Envoy cannot be forced to do (test/stand-in/). It behaves as described
 * in docs/hot-restart-reference.md.
 */

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { type AgentProgram, Mesh } from '../harness/mesh.ts';
import { isFull } from '../harness/size-of-run.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { Control, standInBinary } from '../stand-in/control.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;
let control: Control;
let agent: AgentProgram;

beforeAll(async () => {
  mesh = await Mesh.create({ sidecar: false, watchDelayMs: 100, drainMs: 1_000, parentShutdownMs: 3_000 });
  await mesh.startDiscovery();
  mkdirSync(join(mesh.root, 'gateway'), { recursive: true });
});

beforeEach(async () => {
  control = await Control.listen(join(mesh.root, 'gateway'));
});

afterEach(async () => {
  // A second signal ends the agent immediately, in any state. Two simultaneous signals would count as one.
  agent.program.signal('SIGTERM');
  await sleep(100);
  await agent.program.stop();
  await control.close();
});

afterAll(() => conclude(mesh));

function start(...args: string[]): void {
  agent = mesh.startGateway(['--binaryPath', standInBinary, ...args]);
}

async function readiness(): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${agent.statusPort}/healthz/ready`);
  await response.arrayBuffer();
  return response.status;
}

const agentLogs = (pattern: RegExp): Promise<string> => agent.program.line(pattern);

/** The serving processes, as the operating system lists them. */
const envoys = (): string[] => mesh.envoysOf(agent).map(({ epoch }) => `epoch ${epoch}`);

test('the agent waits for a slow Envoy, and becomes ready when Envoy is live', async () => {
  control.begin = () => ({ live: 'on order' });
  start();
  const envoy = await control.epoch(0);
  await agentLogs(loggedLine('process.spawned'));
  expect(await readiness()).toBe(503);
  await envoy.order({ order: 'live' });
  await mesh.waitForAgent(agent);
});

test('the agent reports a bootstrap that Envoy rejects with its message, and starts no process', async () => {
  let refuses = true;
  control.begin = ({ mode }) =>
    mode === 'validate' && refuses ? { exit: { code: 1, lastWords: 'no such field: bogus' } } : {};
  start();
  await agentLogs(/no such field: bogus/);
  expect(control.serving).toEqual([]);
  refuses = false;
  await mesh.waitForAgent(agent);
  expect(envoys()).toEqual(['epoch 0']);
});

test.runIf(isFull)('an Envoy that exits with 0 without a stop request is restarted from epoch 0 (S8)', async () => {
  start();
  await mesh.waitForAgent(agent);
  const first = await control.epoch(0);
  await first.order({ order: 'exit', code: 0 });
  await eventually('another Envoy serves', () => control.serving.length === 1 && control.serving[0] !== first);
  await mesh.waitForAgent(agent);
  expect(envoys()).toEqual(['epoch 0']);
});

test.runIf(isFull)(
  'the agent reports a crash with the signal and the last output, even if that lacks a final newline',
  async () => {
    start();
    await mesh.waitForAgent(agent);
    const envoy = await control.epoch(0);
    await envoy.order({ order: 'print', text: 'Caught Segmentation fault, suspect faulting addr' });
    await envoy.order({ order: 'crash', signal: 'SIGSEGV' });
    await agentLogs(/signal SIGSEGV: Caught Segmentation fault, suspect faulting addr/);
    await mesh.waitForAgent(agent);
  },
);

test('the agent reads every line of an Envoy that floods its log', async () => {
  // Logs to a file, because a reader that other tests slow down would lose lines.
  const log = join(mesh.root, 'gateway', 'flood.log');
  start('--proxyLogLevel', 'info', '--log_target', log);
  await mesh.waitForAgent(agent);
  const envoy = await control.epoch(0);
  const lines = 15_000;
  await envoy.order({ order: 'flood', lines });
  const readFloodLines = (): string[] => readFileSync(log, 'utf8').match(/\bflood \d+ of \d+/g) ?? [];
  await eventually('the last line is there', () => readFloodLines().at(-1) === `flood ${lines} of ${lines}`);
  expect(readFloodLines()).toEqual(Array.from({ length: lines }, (_, index) => `flood ${index + 1} of ${lines}`));
  expect(await readiness()).toBe(200);
});

test.runIf(isFull)(
  'a parent that rejects its child is repaired, and the same epoch starts again (fact 1)',
  async () => {
    start();
    await mesh.waitForAgent(agent);
    const parent = await control.epoch(0);
    await parent.order({ order: 'refuse children' });
    mesh.renewCertificate();
    await agentLogs(loggedLine('state.changed', { actor: 'supervisor', to: 'repairing shared memory' }));
    await eventually('epoch 1 serves', async () =>
      (await control.epoch(1)).reports.some(({ report }) => report === 'live'),
    );
    await eventually('the parent has left', () => parent.hasExited);
    expect(parent.signals()).toEqual([]);
    expect(envoys()).toEqual(['epoch 1']);
  },
);

test.runIf(isFull)(
  'a child that exits before it is live does not affect its serving parent, and the same epoch starts again',
  async () => {
    start();
    await mesh.waitForAgent(agent);
    const parent = await control.epoch(0);
    let tries = 0;
    control.begin = ({ mode }) => (mode === 'serve' && ++tries === 1 ? { live: 'on order' } : {});
    mesh.renewCertificate();
    const child = await control.epoch(1);
    await child.order({ order: 'exit', code: 1, lastWords: 'cannot bind' });
    expect(await readiness()).toBe(200);
    await eventually('the parent has left', () => parent.hasExited);
    expect(tries).toBeGreaterThan(1);
    expect(envoys()).toEqual(['epoch 1']);
  },
);

test.runIf(isFull)(
  'a child whose draining parent exits early is doomed and is replaced with the second base ID (fact 4)',
  async () => {
    start();
    await mesh.waitForAgent(agent);
    const parent = await control.epoch(0);
    mesh.renewCertificate();
    const child = await control.epoch(1);
    await eventually('epoch 1 is live', () => child.reports.some(({ report }) => report === 'live'));
    await agentLogs(loggedLine('state.changed', { actor: 'epoch-0', to: 'draining' }));
    await parent.order({ order: 'crash', signal: 'SIGKILL' });
    const replacement = await eventually('another base id serves', () =>
      control.serving.find(({ hello }) => hello.baseId !== child.hello.baseId),
    );
    expect(replacement.hello.epoch).toBe(0);
    await eventually('the doomed child has left', () => child.hasExited);
    expect(await readiness()).toBe(200);
  },
);

test('the agent exits even if the admin interface rejects the drain request', async () => {
  start();
  await mesh.waitForAgent(agent);
  const envoy = await control.epoch(0);
  await envoy.order({ order: 'admin', behaviour: 'fails' });
  expect(await agent.program.stop()).toEqual({ code: 0, signal: null });
  const failedFields = { actor: 'epoch-0', reason: /POST .*: status 500/ };
  expect(linesOf(agent.program.lines, 'epoch.drain-failed', failedFields)).toHaveLength(1);
  expect(linesOf(agent.program.lines, 'actor.failed')).toEqual([]);
  expect(envoy.signals()).toEqual(['SIGTERM']);
});

test.runIf(isFull)('the agent exits even if the admin interface does not respond', async () => {
  control.begin = () => ({ live: 'on order' });
  start();
  const envoy = await control.epoch(0);
  await envoy.order({ order: 'admin', behaviour: 'holds' });
  await envoy.order({ order: 'live' });
  expect(await readiness()).toBe(503);
  const stopping = async (): Promise<void> => expect(await agent.program.stop()).toEqual({ code: 0, signal: null });
  expect(await msWithoutQueueing([process.pid, agent.program.pid], stopping)).toBeLessThan(5_000);
});

test('the second signal to the agent kills an Envoy that ignores SIGTERM', async () => {
  control.begin = () => ({ ignores: ['SIGTERM'] });
  start();
  await mesh.waitForAgent(agent);
  const envoy = await control.epoch(0);
  agent.program.signal('SIGTERM');
  await eventually('Envoy was told to end', () => envoy.signals().includes('SIGTERM'));
  expect(envoy.hasExited).toBe(false);
  const stopping = async (): Promise<void> => expect(await agent.program.stop()).toEqual({ code: 0, signal: null });
  expect(await msWithoutQueueing([process.pid, agent.program.pid], stopping)).toBeLessThan(1_500);
  expect(envoys()).toEqual([]);
});

test('an Envoy that ignores SIGTERM is killed when its agent is killed', async () => {
  control.begin = () => ({ ignores: ['SIGTERM'] });
  start();
  await mesh.waitForAgent(agent);
  const envoy = await control.epoch(0);
  await agent.program.stop({ signal: 'SIGKILL' });
  await eventually('the stand-in is gone', () => envoy.hasExited);
  // The next agent removes the files of the exited one.
  control.begin = () => ({});
  start();
  await mesh.waitForAgent(agent);
});
