/** F2: a child that exited before it was live left its mark in shared memory, so its parent rejects every other child. */

import { closeSync, openSync, writeSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { linesOf } from '../harness/logged-line.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

beforeAll(async () => {
  mesh = await startMesh({ sidecar: false, watchDelayMs: 200, drainMs: 1_000, parentShutdownMs: 3_000 });
});

afterAll(() => conclude(mesh));

test('the agent clears the flag of an exited child and starts the same epoch again without a failed request', async () => {
  const load = await mesh.startLoad({
    target: mesh.httpsTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: 2 },
      { kind: 'new', count: 1, pauseMs: 5 },
      { kind: 'h2', count: 1, pauseMs: 5 },
    ],
    maxDurationMs: 60_000,
  });
  const [first] = mesh.envoysOf(mesh.gateway!);
  const sharedMemoryFd = openSync(`/dev/shm/envoy_shared_memory_${first!.baseId * 10}`, 'r+');
  writeSync(sharedMemoryFd, Buffer.from([0x01]), 0, 1, 96);
  closeSync(sharedMemoryFd);

  const serial = mesh.renewCertificate();
  await eventually('the new certificate is served', async () => {
    return (await probe(mesh.httpsTarget)).serialNumber === serial;
  });
  await eventually('the parent has left', () => mesh.envoysOf(mesh.gateway!).length === 1);
  const report = await load.stop();
  const repairing = { actor: 'supervisor', to: 'repairing shared memory' };
  expect(linesOf(mesh.gateway!.program.lines, 'state.changed', repairing)).not.toEqual([]);
  expect(mesh.envoysOf(mesh.gateway!)).toMatchObject([{ baseId: first!.baseId, epoch: 1 }]);
  expect(report.failed, formatReport(report)).toBe(0);
});
