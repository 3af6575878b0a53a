/** SIGUSR2 to bin/pilot-agent, the first process of a container, starts a newer agent that replaces the running one. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { respondingBootstrap } from '../fixtures/responding-bootstrap.ts';
import { checkTraces, countSentEvents } from '../harness/check-traces.ts';
import { type ContainedAgent, endOf, envoysIn, readyAgent } from '../harness/contained-agent.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { sized } from '../harness/size-of-run.ts';
import { traceEvidence } from '../harness/trace-evidence.ts';
import { startLoad } from '../load/load-process.ts';
import { formatReport, type LoadReport } from '../load/report.ts';

const env = { LIVE_RESTORE: 'true' };
const { times, orders, instants } = sized({
  short: { times: 1, orders: 2, instants: 1 },
  full: { times: 40, orders: 40, instants: 30 },
});

const nodesIn = ({ container }: ContainedAgent): number[] => container.agents();

/** How often an event occurs in a trace. The header, which lists all event names, is not counted. */
const timesIn = (trace: string, event: string): number =>
  readFileSync(trace, 'utf8').split('\n').slice(1).join('\n').split(`"${event}"`).length - 1;

/** One trace for each agent. */
const tracesIn = ({ container: { cwd } }: ContainedAgent): string[] =>
  readdirSync(cwd)
    .filter((name) => name.startsWith('agent.trace'))
    .map((name) => join(cwd, name));
const timesInAll = (agent: ContainedAgent, event: string, times = countSentEvents): number =>
  tracesIn(agent).reduce((sum, trace) => sum + times(trace, event), 0);

/**
 * Waits until only one agent remains.
 * @returns the agent that took over
 */
async function replaceAgent(
  agent: ContainedAgent,
  order: () => unknown = () => agent.container.signal('SIGUSR2'),
): Promise<number> {
  const [previousAgent] = nodesIn(agent);
  await order();
  await eventually('a newer agent is alone', () => nodesIn(agent).length === 1 && nodesIn(agent)[0] !== previousAgent, {
    everyMs: 5,
  });
  return nodesIn(agent)[0]!;
}

/** On failed requests, reports what the agents did to their Envoys. */
function expectNoneFailed(agent: ContainedAgent, report: LoadReport): void {
  const { lines } = agent.container.program;
  expect(
    report.failed,
    report.failed === 0 ? '' : `${formatReport(report)}\n${traceEvidence(tracesIn(agent), lines)}`,
  ).toBe(0);
}

async function restartHot(agent: Awaited<ReturnType<typeof readyAgent>>): Promise<void> {
  agent.container.signal('SIGHUP');
  await agent.container.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
}

async function agentUnderLoad() {
  const [port = 0] = await freePorts(1);
  const agent = await readyAgent(['--drainDuration', '1s', '--parentShutdownDuration', '3s'], {
    env,
    bootstrap: (folder, adminPort) => respondingBootstrap(folder, adminPort, port),
  });
  const load = await startLoad({
    target: { host: '127.0.0.1', port, authority: 'localhost' },
    clients: [
      { kind: 'ka', count: 1, pauseMs: sized({ short: 20, full: 5 }) },
      { kind: 'new', count: 1, pauseMs: sized({ short: 20, full: 10 }) },
    ],
    maxDurationMs: 380_000,
  });
  onTestFinished(() => load.kill());
  return { agent, load };
}

test(`${times} newer agents replace the previous one under load and hot restart Envoy without a failed request`, async () => {
  const { agent, load } = await agentUnderLoad();
  let maxMs = 0;
  let isOver = false;
  const probing = (async () => {
    for (let since = performance.now(); !isOver; await sleep(10)) {
      if (await agent.responds()) since = performance.now();
      maxMs = Math.max(maxMs, performance.now() - since);
    }
  })();
  const envoys = envoysIn(agent);
  for (let time = 0; time < times; time++) {
    // Alternates between SIGUSR2 and an HTTP request.
    if (time % 2 === 0) await replaceAgent(agent, async () => expect(await agent.post('/upgrade/agent')).toBe(200));
    else await replaceAgent(agent);
    if (time === 0) expect(envoysIn(agent)).toEqual(envoys);
    if (time % 3 === 1) agent.container.signal('SIGHUP');
    await eventually('the newer agent is ready', agent.ready, { everyMs: 10 });
    await sleep((time * 137) % 500);
  }
  isOver = true;
  await probing;
  const report = await load.stop();
  console.log(`${times} agents; the status port answered nobody for ${Math.round(maxMs)} ms\n${formatReport(report)}`);
  expectNoneFailed(agent, report);
  expect(report.total).toBeGreaterThan(20);
  await agent.container.hasNoZombie();
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
  const { cwd } = agent.container;
  expect(readdirSync(join(cwd, 'run')).filter((name) => name.startsWith('live-restore'))).toEqual([]);
  const traces = tracesIn(agent);
  expect(traces).toHaveLength(times + 1);
  const { code, output } = await checkTraces(traces);
  expect(code, output).toBe(0);
});

test(`a hot restart requested at ${orders} moments of agent replacements starts only once and fails no request`, async () => {
  const { agent, load } = await agentUnderLoad();
  const countRestarts = (): number => timesInAll(agent, 'supervisor.restart');
  for (let order = 0; order < orders; order++) {
    const [previousAgent] = nodesIn(agent);
    const already = countRestarts();
    const { length } = tracesIn(agent);
    const outputText = agent.container.program.lines.length;
    agent.container.signal('SIGUSR2');
    // Most requests fall into the hand-over by the older agent, after the newer agent has started.
    if (order % 3 === 0) await sleep((order * 53) % 1_500);
    else {
      const hasBegun = (): true => {
        if (tracesIn(agent).length > length) return true;
        throw new Error(agent.container.program.lines.slice(outputText).join('\n'));
      };
      await eventually('the newer one has begun', hasBegun, { everyMs: 2 });
      await sleep((order * 29) % 260);
    }
    agent.container.signal('SIGUSR1');
    agent.container.signal('SIGHUP');
    await eventually(
      'a newer agent is alone',
      () => nodesIn(agent).length === 1 && nodesIn(agent)[0] !== previousAgent,
      {
        everyMs: 5,
      },
    );
    await eventually('the restart is begun', () => countRestarts() > already, { everyMs: 20 });
    await eventually('the newer agent is ready', agent.ready, { everyMs: 10 });
  }
  const report = await load.stop();
  console.log(`${countRestarts()} restarts begun of ${orders} that were ordered\n${formatReport(report)}`);
  expectNoneFailed(agent, report);
  expect(countRestarts()).toBe(orders);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  const { code, output } = await checkTraces(tracesIn(agent));
  expect(code, output).toBe(0);
});

test(`SIGUSR2 at ${instants} instants after a hand-over starts a third agent or logs why it does not`, async () => {
  const agent = await readyAgent([], { env });
  const { program } = agent.container;
  const envoys = envoysIn(agent);
  const heldTimes = (): number => timesInAll(agent, 'successor.confirmed');
  const isSingleReady = async (): Promise<boolean> => nodesIn(agent).length === 1 && (await agent.ready());
  let thirds = 0;
  for (let instant = 0; instant < instants; instant++) {
    const [previousAgent] = [heldTimes()];
    const refusals = program.lines.length;
    agent.container.signal('SIGUSR2');
    await eventually('the older one has given way', () => heldTimes() > previousAgent, { everyMs: 1 });
    await sleep((instant * 7) % 60);
    agent.container.signal('SIGUSR2');
    await eventually('something came of it', async () => {
      const outputText = program.lines.slice(refusals).join('\n');
      const isRefused = /SIGUSR2 ignored|the older agent|no record|another agent has/.test(outputText);
      const isThird = heldTimes() > previousAgent + 1;
      if (!isRefused && !isThird) return false;
      if (isThird) thirds++;
      return true;
    });
    await eventually('one agent is alone, and ready', isSingleReady);
    expect(envoysIn(agent)).toEqual(envoys);
  }
  console.log(`${thirds} of ${instants} times a third agent took over, else it was refused with a word`);
  await agent.container.hasNoZombie();
  await restartHot(agent);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
});

test('the older agent kills a hanging newer agent, and continues to manage the running Envoys', async () => {
  const agent = await readyAgent([], { env });
  const envoys = envoysIn(agent);
  const ready = (): number => timesInAll(agent, 'successor.ready');
  const { lines } = agent.container.program;
  const { newer, previousAgent } = await eventually('a second order is refused', async () => {
    const [olderPid] = nodesIn(agent);
    const [previousAgent, from] = [ready(), lines.length];
    agent.container.signal('SIGUSR2');
    const newer = await eventually('there is a newer agent', () => nodesIn(agent).find((pid) => pid !== olderPid), {
      everyMs: 1,
    });
    agent.container.signal('SIGUSR2');
    const isRefused = (): boolean => lines.slice(from).some((line) => /SIGUSR2 ignored/.test(line));
    await eventually('it is refused, or its turn has come', () => isRefused() || !nodesIn(agent).includes(olderPid!));
    if (isRefused()) return { newer, previousAgent };
    // The request came right after the start of the newer agent, so it waits for a second, and then a third agent starts.
    await eventually('one is alone for good', async () => {
      const [remainingPid] = nodesIn(agent);
      await sleep(1_500);
      return nodesIn(agent).length === 1 && nodesIn(agent)[0] === remainingPid && (await agent.ready());
    });
    return undefined;
  });
  await eventually('it is there', () => ready() > previousAgent, { everyMs: 1 });
  process.kill(newer!, 'SIGSTOP');
  await eventually('one is alone', () => nodesIn(agent).length === 1);
  // The newer agent had already taken over.
  if (nodesIn(agent)[0] === newer) process.kill(newer!, 'SIGCONT');
  await eventually('it is ready', agent.ready);
  expect(envoysIn(agent)).toEqual(envoys);
  await restartHot(agent);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
});

test('an older agent that is suspended while a newer one takes over exits as soon as it resumes', async () => {
  const agent = await readyAgent([], { env });
  const envoys = envoysIn(agent);
  const countSent = (event: string): number => timesInAll(agent, event);
  /** @returns the newer agent and the older one, suspended after the hand-over, or `undefined` if the older one had already exited */
  const replace = async () => {
    const [olderPid] = nodesIn(agent);
    const [granted, confirmedCount] = [countSent('successor.grant'), countSent('takeover.confirm')];
    agent.container.signal('SIGUSR2');
    const newer = await eventually('there is a newer agent', () => nodesIn(agent).find((pid) => pid !== olderPid), {
      everyMs: 1,
    });
    await eventually('the older one has given way', () => countSent('successor.grant') > granted, { everyMs: 1 });
    const isStopped = await stops(agent, olderPid!);
    await eventually('the newer one holds', () => countSent('takeover.confirm') > confirmedCount);
    return isStopped ? { older: olderPid!, newer: newer! } : undefined;
  };
  const { older, newer } = await eventually('an older one is stopped', async () => {
    const replacement = await replace();
    if (replacement === undefined) await eventually('one agent is alone', () => nodesIn(agent).length === 1);
    return replacement;
  });
  // Longer than the older agent waits for the response.
  await sleep(1_500);
  process.kill(older, 'SIGCONT');
  await eventually('one agent is alone', () => nodesIn(agent).length === 1);
  expect(nodesIn(agent)).toEqual([newer]);
  await eventually('it is ready', agent.ready);
  expect(envoysIn(agent)).toEqual(envoys);
  await restartHot(agent);
});

/**
 * Suspends a process.
 * @returns false if the process had exited
 */
async function stops({ container }: ContainedAgent, pid: number): Promise<boolean> {
  try {
    process.kill(pid, 'SIGSTOP');
  } catch {
    return false;
  }
  // A signal to a zombie succeeds without effect.
  const state = await eventually('it is stopped, or has ended', () => {
    const { state: now = 'gone' } = container.children().find((child) => child.pid === pid) ?? {};
    return ['T', 'Z', 'gone'].includes(now) && now;
  });
  return state === 'T';
}

test('a newer agent that takes over before the successor of a killed agent manages the running Envoys alone', async () => {
  const agent = await readyAgent([], { env });
  const envoys = envoysIn(agent);
  const { lines } = agent.container.program;
  const isQuicker = async (): Promise<boolean> => {
    const [killed] = nodesIn(agent);
    const from = lines.length;
    const tookOver = new RegExp(
      `${loggedLine('epochs.adopted.handedOver').source}|${loggedLine('epochs.adopted.orphaned').source}`,
    );
    const outputText = (pattern: RegExp): boolean => lines.slice(from).some((line) => pattern.test(line));
    process.kill(killed!, 'SIGKILL');
    const slowPid = await eventually('the next one is started', () => nodesIn(agent).find((pid) => pid !== killed), {
      everyMs: 1,
    });
    process.kill(slowPid!, 'SIGSTOP');
    const isSlow = !outputText(tookOver);
    agent.container.signal('SIGUSR2');
    const resultPattern = new RegExp(`${tookOver.source}|SIGUSR2 ignored|the older agent|another agent has`);
    if (isSlow) await eventually('the newer one has taken over, or may not', () => outputText(resultPattern));
    const hasTakenOver = isSlow && outputText(tookOver);
    process.kill(slowPid!, 'SIGCONT');
    await eventually(
      'one is alone',
      () => nodesIn(agent).length === 1 && (!hasTakenOver || nodesIn(agent)[0] !== slowPid),
    );
    await eventually('it is ready', agent.ready);
    expect(envoysIn(agent)).toEqual(envoys);
    return hasTakenOver;
  };
  // Retries, because a busy machine may suspend the slow agent only during its take-over.
  await eventually('the newer one was quicker', isQuicker);
  await restartHot(agent);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
});

/** A foreign process of the same network namespace that takes the names of base IDs as soon as they are free. */
async function startForeignProcess(baseIds: readonly string[]): Promise<Program> {
  const program = Program.run('the stranger', 'python3', {
    env: process.env,
    cwd: '/',
    args: [
      '-c',
      `import signal, socket, sys
held = []
wanted = sys.argv[1:]
print('waits', flush=True)
while wanted:
    for baseId in list(wanted):
        taken = socket.socket(socket.AF_UNIX)
        try: taken.bind('\\0chartpilot_base_id_' + baseId)
        except OSError: taken.close(); continue
        held.append(taken); wanted.remove(baseId); print('took', baseId, flush=True)
signal.pause()`,
      ...baseIds,
    ],
  });
  onTestFinished(() => void (program.exit ?? process.kill(program.pid, 'SIGKILL')));
  await program.line(/waits/);
  return program;
}

test('subsequent agents keep the same Envoy while another process occupies the name of the base ID', async () => {
  const agent = await readyAgent([], { env });
  const envoys = envoysIn(agent);
  const baseIds = readdirSync(join(agent.container.cwd, 'run')).flatMap(
    (name) => /^base-id-(\d+)$/.exec(name)?.[1] ?? [],
  );
  const thief = await startForeignProcess(baseIds);
  // A newer agent starts as soon as the older one has handed over, and might take over first.
  await replaceAgent(agent, async () => {
    process.kill(nodesIn(agent)[0]!, 'SIGKILL');
    await thief.line(/took/);
  });
  await eventually('the next agent is ready', agent.ready);
  expect(envoysIn(agent)).toEqual(envoys);
  expect(linesOf(agent.container.program.lines, 'baseId.taken')).not.toEqual([]);
  for (const trigger of ['order', 'kill', 'order'] as const) {
    await replaceAgent(agent, () =>
      trigger === 'order' ? agent.container.signal('SIGUSR2') : process.kill(nodesIn(agent)[0]!, 'SIGKILL'),
    );
    await eventually(`the agent after one more (${trigger}) is ready`, agent.ready);
    expect(envoysIn(agent)).toEqual(envoys);
  }
  await restartHot(agent);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
});

/** Each step of a replacement, as recorded in the trace of its agent. */
const allSteps = [
  ['older', 'successor.ready'],
  ['newer', 'predecessor.granted'],
  ['older', 'succession.begin'],
  ['newer', 'succession.taken'],
  ['older', 'successor.grant'],
  ['newer', 'epochs.adopted'],
  ['older', 'succession.due'],
  ['newer', 'succession.complete'],
  ['older', 'successor.confirmed'],
  ['newer', 'takeover.confirm'],
] as const;
const sides = ['older', 'newer'] as const;
const kills = sized({
  short: { steps: allSteps.slice(0, 2).map(([agentSide, step]) => [agentSide, step] as const) },
  full: { steps: sides.flatMap((agentSide) => allSteps.map(([, step]) => [agentSide, step] as const)) },
}).steps;

test(`killing either agent at any of ${kills.length} steps of a replacement leaves one agent, which keeps the same Envoy`, async () => {
  const [port = 0] = await freePorts(1);
  const agent = await readyAgent([], {
    env,
    bootstrap: (folder, adminPort) => respondingBootstrap(folder, adminPort, port),
  });
  const envoys = envoysIn(agent);
  const clients = [{ kind: 'new', count: 1, pauseMs: sized({ short: 20, full: 10 }) }] as const;
  const load = await startLoad({
    target: { host: '127.0.0.1', port, authority: 'localhost' },
    clients,
    maxDurationMs: 380_000,
  });
  onTestFinished(() => load.kill());
  const timesReported = (step: string): number => timesInAll(agent, step, timesIn);
  const outages: number[] = [];
  for (const [index, [agentSide, step]] of kills.entries()) {
    // The launcher exits after ten consecutive agents that run for less than two seconds.
    if (index % 5 === 4) await sleep(2_500);
    const [olderPid] = nodesIn(agent);
    const previousAgent = timesReported(step);
    agent.container.signal('SIGUSR2');
    const newer = await eventually('a newer agent', () => nodesIn(agent).find((pid) => pid !== olderPid), {
      everyMs: 1,
    });
    await eventually(`it is told: ${step}`, () => timesReported(step) > previousAgent, { everyMs: 1 });
    try {
      process.kill(agentSide === 'older' ? olderPid! : newer!, 'SIGKILL');
    } catch {
      // The agent exited before it could be killed.
    }
    const killedAt = performance.now();
    await eventually(
      `${agentSide} killed at ${step}: one agent is left, and is ready`,
      async () => nodesIn(agent).length === 1 && (await agent.ready()),
      { everyMs: 5 },
    );
    outages.push(Math.round(performance.now() - killedAt));
    expect(envoysIn(agent)).toEqual(envoys);
  }
  const report = await load.stop();
  console.log(`one agent was left, and ready, ${outages.join(', ')} ms after each kill\n${formatReport(report)}`);
  expectNoneFailed(agent, report);
  await agent.container.hasNoZombie();
  await restartHot(agent);
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
});
