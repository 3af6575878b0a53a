import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { hostProcesses } from '../harness/host-processes.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { sized } from '../harness/size-of-run.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

const crashes = sized({ short: 5, full: 10 });

/** Agents that share a run directory remove files of exited agents, including those of parallel tests. */
const runDirectory = mkdtempSync(join(tmpdir(), 'chartpilot-run-'));

beforeAll(async () => {
  const times = { drainMs: 1_000, parentShutdownMs: 2_000, terminationDrainMs: 5_000 };
  mesh = await startMesh({ ...times, sidecar: false, runDirectory });
});

afterAll(async () => {
  await conclude(mesh);
  rmSync(runDirectory, { recursive: true, force: true });
});

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function soleEnvoy(agent: AgentProgram): Promise<number> {
  const envoy = await eventually('one Envoy is left', () => {
    const envoys = mesh.envoysOf(agent);
    return envoys.length === 1 ? envoys[0] : undefined;
  });
  return envoy.pid;
}

test(`a successor serves within a second after kill -9 of the only Envoy (median of ${crashes})`, async () => {
  const downMs: number[] = [];
  for (let crash = 0; crash < crashes; crash++) {
    // A new certificate resets the retry budget, so each crash starts with a full one.
    const serial = mesh.renewCertificate();
    await eventually('the new certificate is served', async () => {
      return (await probe(mesh.httpsTarget)).serialNumber === serial;
    });
    const envoy = await soleEnvoy(mesh.gateway!);
    const down = await msWithoutQueueing([process.pid, mesh.gateway!.program.pid], async () => {
      process.kill(envoy, 'SIGKILL');
      await eventually('the gateway answers again', async () => (await probe(mesh.httpTarget)).outcome.ok, {
        everyMs: 5,
      });
    });
    downMs.push(down);
  }
  console.log(
    `ms without an answer after kill -9, in which there was a processor: ${downMs.map(Math.round).join(' ')}, median ${Math.round(median(downMs))}`,
  );
  expect(median(downMs)).toBeLessThan(1_000);
});

test('no Envoy remains after kill -9 of the agent, and the next agent removes leftover files', async () => {
  const { program } = mesh.gateway!;
  const envoys = mesh.envoysOf(mesh.gateway!);
  expect(envoys.length).toBeGreaterThan(0);
  program.signal('SIGKILL');
  await program.exited;
  const livingEnvoys = (): unknown[] => {
    const alive = new Set(hostProcesses().map(({ pid }) => pid));
    return envoys.filter(({ pid }) => alive.has(pid));
  };
  await eventually('none is left', () => livingEnvoys().length === 0, {
    deadlineMs: sized({ short: 10_000, full: 1_000 }),
  });
  expect(mesh.leftovers()).toEqual(expect.arrayContaining([expect.stringContaining('/dev/shm/')]));
  await mesh.waitForAgent(mesh.startGateway());
  await mesh.waitForResponse(mesh.httpTarget);
});

test('the agent exits with 0 after SIGTERM under load, when requests in flight have completed', async () => {
  const load = await mesh.startLoad({
    target: mesh.httpTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: 2 },
      { kind: 'h2', count: 1, pauseMs: 5 },
      { kind: 'stream', count: 4, path: '/stream?seconds=3' },
    ],
    maxDurationMs: 30_000,
  });
  await sleep(1_500);
  const stopReport = load.stop();
  const exit = await mesh.gateway!.program.stop({ signal: 'SIGTERM' });
  const report = await stopReport;
  expect(report.failed, formatReport(report)).toBe(0);
  expect(report.kinds.stream!.total).toBeGreaterThanOrEqual(4);
  expect(exit).toEqual({ code: 0, signal: null });
});
