/**
 * Fault F2 (test/model/agent/faults.test.ts) and fact 4 (docs/hot-restart-reference.md): an Envoy that accepts no more children is replaced by one
 * with the other base ID, started while it still serves.
 */

import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { sharedMemoryFile } from '../bench/agent-usage.ts';
import { eventually } from '../harness/eventually.ts';
import type { EnvoyProcess } from '../harness/host-processes.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import type { LoadRun } from '../load/load-process.ts';
import type { ClientPlan } from '../load/plan.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh | undefined;

afterEach(async () => {
  const endedMesh = mesh;
  mesh = undefined;
  await conclude(endedMesh);
});

const clients: readonly ClientPlan[] = [
  { kind: 'ka', count: 2, pauseMs: 2 },
  { kind: 'slow', count: 1, pauseMs: 700 },
  { kind: 'new', count: 1, pauseMs: 5 },
  { kind: 'h2', count: 1, pauseMs: 5 },
];
/** Connections that may carry a request when their Envoy is killed: `h2` has two. */
const maxInFlight = 6;
/** On a busy machine a client notices a closed connection late. */
const killSeenWithinMs = 2_000;
/** The load generator measures time from its start. */
const clockSkewMs = 20;
/** Closing a listening socket resets connections that only the kernel has accepted (1 to 18 in 12,000). */
const resetsAllowed = 3;

/** A doomed child serves normally until its next message to its exited parent, at most this long. */
const blockedAfterMs = 5_000;

const load = (target: Mesh): Promise<LoadRun> =>
  target.startLoad({ target: target.httpsTarget, clients, maxDurationMs: 90_000 });

async function servedCertificate(target: Mesh, serial: string): Promise<void> {
  await eventually(`certificate ${serial} is served`, async () => {
    return (await probe(target.httpsTarget)).serialNumber === serial;
  });
}

async function soleEnvoy(target: Mesh): Promise<EnvoyProcess> {
  return eventually('one Envoy is left', () => {
    const envoys = target.envoysOf(target.gateway!);
    return envoys.length === 1 ? envoys[0] : undefined;
  });
}

interface Readiness {
  readonly probeCount: number;
  /** Responses other than 200 with their times and the reasons from the agent's log. */
  readonly failures: readonly string[];
}

/**
 * Probes readiness continuously.
 * @returns a function that stops it and returns the responses
 */
function watchReadiness({ program, statusPort }: AgentProgram): () => Promise<Readiness> {
  let watching = true;
  const fromLine = program.lines.length;
  const probing = (async () => {
    let probeCount = 0;
    const failures: string[] = [];
    while (watching) {
      const probedAt = new Date().toISOString();
      const response = await fetch(`http://127.0.0.1:${statusPort}/healthz/ready`);
      await response.arrayBuffer();
      probeCount++;
      if (response.status !== 200) failures.push(`${probedAt} to ${new Date().toISOString()}: ${response.status}`);
      await sleep(20);
    }
    // The response has no body, so the reason is taken from the log.
    if (failures.length > 0) failures.push(...program.lines.slice(fromLine));
    return { probeCount, failures };
  })();
  return () => {
    watching = false;
    return probing;
  };
}

async function metricsOf({ statusPort }: AgentProgram): Promise<string> {
  return (await fetch(`http://127.0.0.1:${statusPort}/stats/prometheus`)).text();
}

async function adminEpoch(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/server_info`);
  const info = (await response.json()) as { command_line_options: { restart_epoch?: number } };
  return info.command_line_options.restart_epoch ?? 0;
}

/** Writes the mark that a child leaves in shared memory if it exits during its start, in an unknown layout, so that it cannot be repaired. */
function breakHotRestart(baseId: number): void {
  const sharedMemoryFd = openSync(sharedMemoryFile(baseId), 'r+');
  writeSync(sharedMemoryFd, Buffer.from([0x01]), 0, 1, 96);
  ftruncateSync(sharedMemoryFd, 112);
  closeSync(sharedMemoryFd);
}

test('the next Envoy starts in parallel to the old one with the spare base ID after a permanently stuck hot restart (S19)', async () => {
  mesh = await startMesh({ sidecar: false, watchDelayMs: 200, drainMs: 1_000, parentShutdownMs: 4_000 });
  const gateway = mesh.gateway!;
  const run = await load(mesh);
  const readiness = watchReadiness(gateway);
  const first = await soleEnvoy(mesh);
  breakHotRestart(first.baseId);

  await servedCertificate(mesh, mesh.renewCertificate());
  const replacement = await soleEnvoy(mesh);
  expect(replacement).toMatchObject({ epoch: 0, baseId: expect.not.toSatisfy((id) => id === first.baseId) });
  const movedLine = await gateway.program.line(loggedLine('admin.moved'));
  const sparePort = Number(/address=127\.0\.0\.1:(\d+)/.exec(movedLine)![1]);
  await expect(adminEpoch(gateway.adminPort)).rejects.toThrow('fetch failed');

  // From here on the spare base ID is an ordinary one.
  await servedCertificate(mesh, mesh.renewCertificate());
  expect(await soleEnvoy(mesh)).toMatchObject({ epoch: 1, baseId: replacement.baseId });
  expect(await adminEpoch(sparePort)).toBe(1);
  const metrics = await metricsOf(gateway);
  expect(metrics).toContain(
    'istio_agent_envoy_restarts_total{reason="configuration_changed",how="replacement",outcome="live"} 1\n',
  );
  expect(metrics).toContain('istio_agent_envoy_serving{epoch="epoch-1b"} 1\n');
  expect(metrics).toContain('istio_agent_envoy_not_serving_seconds_total 0\n');
  // Envoy's own metrics, from the spare port.
  expect(metrics).toMatch(/^envoy_server_hot_restart_epoch\{\} 1$/m);

  const { probeCount, failures } = await readiness();
  const report = await run.stop();
  console.log(
    `stuck for good: ${probeCount} times asked for readiness, ${failures.length} not ready\n${formatReport(report)}`,
  );
  expect(failures).toEqual([]);
  const { new: newConnections, ...keptKinds } = report.kinds;
  expect(newConnections!.failed, formatReport(report)).toBeLessThanOrEqual(resetsAllowed);
  expect(
    Object.values(keptKinds).map(({ failed }) => failed),
    formatReport(report),
  ).toEqual([0, 0, 0]);
});

test('a child is doomed if its parent exits early, and is replaced before it aborts (fact 4)', async () => {
  mesh = await startMesh({ sidecar: false, watchDelayMs: 200, drainMs: 3_000, parentShutdownMs: 9_000 });
  const gateway = mesh.gateway!;
  const run = await load(mesh);
  const readiness = watchReadiness(gateway);
  const parent = await soleEnvoy(mesh);

  await servedCertificate(mesh, mesh.renewCertificate());
  await gateway.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
  const killedAt = Date.now();
  process.kill(parent.pid, 'SIGKILL');
  await gateway.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0b' }));
  const replacedAfterMs = Date.now() - killedAt;

  const last = await soleEnvoy(mesh);
  expect(last).toMatchObject({ epoch: 0, baseId: expect.not.toSatisfy((id) => id === parent.baseId) });
  const { probeCount, failures } = await readiness();
  const report = await run.stop();
  console.log(
    `parent killed early: replaced after ${Math.round(replacedAfterMs)} ms, ${probeCount} times asked for readiness, ` +
      `${failures.length} not ready\n${formatReport(report)}`,
  );
  const restartFields = { 'restart.reason': 'parent died early', 'restart.how': 'replacement' };
  expect(linesOf(gateway.program.lines, 'restart.ended.live', { epoch: 'epoch-0b', ...restartFields })).toHaveLength(1);
  expect(replacedAfterMs).toBeLessThan(blockedAfterMs);
  expect(failures).toEqual([]);
  const cutAfterKillMs = Object.values(report.kinds)
    .flatMap(({ failures }) => failures)
    .map(({ atMs }) => report.startedAt + atMs - killedAt)
    .filter((afterKillMs) => afterKillMs > -clockSkewMs && afterKillMs < killSeenWithinMs);
  expect(cutAfterKillMs.length, formatReport(report)).toBeLessThanOrEqual(maxInFlight);
  expect(report.failed - cutAfterKillMs.length, formatReport(report)).toBeLessThanOrEqual(resetsAllowed);
});
