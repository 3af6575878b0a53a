import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  let mesh: Mesh;

  beforeAll(async () => {
    mesh = await startMesh({ delta });
  });

  afterAll(() => conclude(mesh));

  test('requests reach v1 and v2 by the weights in the file, and an edit is in force within a second', async () => {
    const load = await mesh.startLoad({
      target: mesh.httpTarget,
      clients: [{ kind: 'ka', count: 4 }],
      maxDurationMs: 60_000,
    });
    await sleep(1_500);
    await eventually('there are enough requests to judge shares by', async () => (await load.report()).total > 300);
    const editedAt = mesh.directory.setWeights({ v1: 20, v2: 80 });
    await sleep(3_000);
    const report = await load.stop();
    expect(report.failed).toBe(0);

    const at = (wallClock: number): number => wallClock - report.startedAt;
    const share = (fromMs: number, untilMs: number): { v2: number; total: number } => {
      const slices = report.timeline.filter((s) => s.atMs >= fromMs && s.atMs < untilMs);
      const total = slices.reduce((sum, s) => sum + s.total, 0);
      return { v2: slices.reduce((sum, s) => sum + (s.versions.v2 ?? 0), 0) / total, total };
    };
    const before = share(0, at(editedAt) - 100);
    const after = share(at(editedAt) + 1_000, report.durationMs);
    console.log(
      `share of v2: ${before.v2.toFixed(3)} of ${before.total}, then ${after.v2.toFixed(3)} of ${after.total}`,
    );
    expect(before.total).toBeGreaterThan(200);
    // Four standard deviations of a binomial at these numbers of requests.
    expect(Math.abs(before.v2 - 0.1)).toBeLessThan(4 * Math.sqrt((0.1 * 0.9) / before.total));
    expect(Math.abs(after.v2 - 0.8)).toBeLessThan(4 * Math.sqrt((0.8 * 0.2) / after.total));
  });
});
