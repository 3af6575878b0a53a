/**
 * Measures the time from a write at the source (another process, in Go) until a real Envoy applies it, with the default debounce: one of many objects
 * changes or is deleted, or the source removes all objects. Nightly only. The limits are those of a quiet machine. On a busy one, the debounce plus
 * the processor time of the three processes counts.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { youngStreamMs } from '../../machines/discovery/config/xds-source.machine.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { slowness } from '../harness/slowness.ts';
import { startRealEnvoy } from '../networking/ads-envoy.ts';

const cleanups: (() => void)[] = [];
afterEach(async () => {
  await stopControlPlanes();
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const count = 10_000;
const changes = 20;
const maxDeletionMs = 300;
/** Removing all objects is bound by the processor: about 0.1 ms for each. */
const maxEmptiedMs = 2_000;
const debounceMs = 100;

/** Not shorter, because polling uses processor time of this process, which the test measures. */
const pollIntervalMs = 25;

/** Milliseconds of processor time of a process since its start; for this process, only its main thread (no compilation, no garbage collection). */
function cpuMs(pid: number): number {
  const threads = pid === process.pid ? [`${pid}`] : readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** Only this service is visible to the client, which therefore receives little configuration. */
const scope = `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec: {egress: [{hosts: ["shop/e7.example.com"]}]}
`;

it.skipIf(sized({ short: true, full: false })).each([
  ['sotw', 300],
  ['delta', 150],
] as const)(
  'Envoy applies a change of one object among many over %s within %d ms, and deletions within 300 ms',
  async (protocol, limitMs) => {
    const directory = mkdtempSync(join(tmpdir(), 'config-source-'));
    const binary = join(directory, 'source');
    const cwd = join(packageRoot(), 'test/harness/go-config-source');
    const built = spawnSync('go', ['build', '-mod=readonly', '-o', binary, '.'], { cwd, encoding: 'utf8' });
    expect(built.status, `this test needs Go: ${built.stderr}`).toBe(0);
    const source = spawn(binary, ['127.0.0.1:0']);
    cleanups.push(
      () => source.kill('SIGKILL'),
      () => rmSync(directory, { recursive: true }),
    );
    const address = await new Promise<string>((resolve) =>
      createInterface(source.stdout).once('line', (line) => resolve((JSON.parse(line) as { address: string }).address)),
    );
    source.stdout.resume();
    source.stdin.write(`fill ${count}\n`);
    const mesh = `configSources: [{address: "xds://${address}?protocol=${protocol}"}]\n`;
    const plane = new ControlPlane({}, { 'scope.yaml': scope }, ({ root }) => writeFileSync(join(root, 'mesh'), mesh));
    await plane.ready();
    const envoy = await startRealEnvoy(plane.port('ads.listening'), sidecar, { delta: true });
    cleanups.push(() => void envoy.stop());
    const connectedAt = performance.now();
    const hasCluster = async (cluster: string): Promise<boolean> =>
      (await envoy.admin('/clusters')).includes(`outbound|${cluster}||e7.example.com`);
    const pids = [process.pid, source.pid!, envoy.pid];
    /** Runs a command; returns the milliseconds until Envoy has applied it. */
    const took = async (command: string, isDone: () => Promise<boolean>): Promise<number> => {
      const cpu = pids.map(cpuMs);
      const startedAt = performance.now();
      source.stdin.write(`${command}\n`);
      while (!(await isDone())) await sleep(pollIntervalMs);
      const raw = performance.now() - startedAt;
      const busyMs = pids.reduce((sum, pid, index) => sum + cpuMs(pid) - cpu[index]!, 0);
      return Math.min(raw, debounceMs + busyMs / slowdown);
    };
    let slowdown = await slowness();
    const put = (port: number): Promise<number> =>
      took(`put shop/e7 e7.example.com ${port}`, () => hasCluster(`${port}`));
    const listens = async (port: number): Promise<boolean> => (await envoy.admin('/listeners')).includes(`_${port}:`);
    await eventually('Envoy has the cluster', () => hasCluster('80'));
    const changesMs: number[] = [];
    const deletionsMs: number[] = [];
    let port = 1_000;
    for (let change = 0; change < changes; change++) {
      changesMs.push(await put(++port));
      if (change % 4 > 0) continue;
      // Clusters are removed some time after their routes; the listener of the port is removed immediately.
      await eventually('Envoy listens', () => listens(port));
      deletionsMs.push(await took('delete shop/e7', async () => !(await listens(port))));
      await put(++port);
      await eventually('Envoy listens again', () => listens(port));
    }
    await eventually('the stream is not young', () => performance.now() - connectedAt > youngStreamMs);
    slowdown = await slowness();
    const emptiedMs = await took('empty', async () => !(await listens(port)));
    const [changeMs, deletionMs] = [median(changesMs), median(deletionsMs)];
    console.info(
      `${protocol}, ${count} objects: change ${changeMs.toFixed(0)} ms, deletion ${deletionMs.toFixed(0)} ms, all objects deleted ${emptiedMs.toFixed(0)} ms, machine ${slowdown.toFixed(1)} times as slow as a quiet one`,
    );
    expect(changeMs).toBeLessThanOrEqual(limitMs);
    expect(deletionMs).toBeLessThanOrEqual(maxDeletionMs);
    expect(emptiedMs).toBeLessThanOrEqual(maxEmptiedMs);
  },
  180_000,
);

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
