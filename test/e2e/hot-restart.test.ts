import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { sized } from '../harness/size-of-run.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

/** A connection may begin a second stream before its parent sends GOAWAY: both must end before the parent's shutdown, with margin. */
const { restarts, drainMs, parentShutdownMs, streamSeconds } = sized({
  short: { restarts: 3, drainMs: 2_000, parentShutdownMs: 8_000, streamSeconds: 2 },
  full: { restarts: 10, drainMs: 5_000, parentShutdownMs: 12_000, streamSeconds: 3 },
});

beforeAll(async () => {
  mesh = await startMesh({ watchDelayMs: 500, drainMs, parentShutdownMs });
});

afterAll(() => conclude(mesh));

test(`${restarts} hot restarts due to certificate changes fail no request, and each serves the new certificate`, async () => {
  const load = await mesh.startLoad({
    target: mesh.httpsTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: sized({ short: 20, full: 2 }) },
      { kind: 'slow', count: 3, pauseMs: 1_500 },
      { kind: 'new', count: 1, pauseMs: sized({ short: 20, full: 5 }) },
      { kind: 'h2', count: 1, pauseMs: sized({ short: 20, full: 5 }) },
      { kind: 'stream', count: 4, path: `/stream?seconds=${streamSeconds}` },
    ],
    maxDurationMs: 240_000,
  });
  const serials: string[] = [];
  for (let restart = 1; restart <= restarts; restart++) {
    const serial = mesh.renewCertificate();
    serials.push(serial);
    await eventually(
      `restart ${restart}: certificate ${serial} is served`,
      async () => {
        return (await probe(mesh.httpsTarget)).serialNumber === serial;
      },
      { everyMs: 100 },
    );
    await eventually(`restart ${restart}: a client has seen it`, async () => {
      const { certificates } = await load.report();
      return certificates.some(({ serialNumber }) => serialNumber === serial);
    });
    // At most the serving epoch and its draining parent.
    expect(mesh.envoysOf(mesh.gateway!).length).toBeLessThanOrEqual(2);
  }
  const newest = mesh.envoysOf(mesh.gateway!).at(-1);
  expect(newest?.epoch).toBe(restarts);
  const report = await load.stop();
  console.log(`${restarts} hot restarts\n${formatReport(report)}`);
  expect(report.failed, formatReport(report)).toBe(0);
  for (const kind of ['ka', 'slow', 'new', 'h2', 'stream'] as const) {
    expect(report.kinds[kind]!.total).toBeGreaterThan(10);
  }
  expect(report.certificates.map(({ serialNumber }) => serialNumber).slice(1)).toEqual(serials);
});
