import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { sized } from '../harness/size-of-run.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;
const streamSeconds = 6;
const keepAliveAgent = new Agent({ keepAlive: true });

beforeAll(async () => {
  mesh = await startMesh({
    sidecar: false,
    // Much shorter than the stream and the time limit of this test.
    terminationDrainMs: 1_000,
    env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true', MINIMUM_DRAIN_DURATION: '1s' },
  });
});

afterAll(async () => {
  keepAliveAgent.destroy();
  await conclude(mesh);
});

/** Sends a request on a connection that stays open and idle afterwards. */
function leaveIdleConnection(): Promise<number | undefined> {
  const { host, port, authority } = mesh.httpTarget;
  return new Promise((resolve, reject) => {
    request({ host, port, agent: keepAliveAgent, headers: { host: authority } }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    })
      .once('error', reject)
      .end();
  });
}

test('a stopping agent waits for requests in flight, but not for idle connections', async () => {
  expect(await leaveIdleConnection()).toBe(200);
  const begunAt = performance.now();
  const stream = probe(mesh.httpTarget, { path: `/stream?seconds=${streamSeconds}`, timeoutMs: 60_000 });
  await sleep(500);
  const exit = mesh.gateway!.program.stop({ signal: 'SIGTERM', deadlineMs: 60_000 });
  expect((await stream).outcome).toMatchObject({ ok: true });
  const streamedMs = performance.now() - begunAt;
  expect(await exit).toEqual({ code: 0, signal: null });
  const lingeredMs = performance.now() - begunAt - streamedMs;
  expect(streamedMs).toBeGreaterThan(1_000 * streamSeconds - 500);
  // The agent polls every second; the idle connection never closes.
  expect(lingeredMs).toBeLessThan(sized({ short: 10_000, full: 3_000 }));
});
