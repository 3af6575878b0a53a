import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import type { LoadReport, TimelineSlice } from '../load/report.ts';
import { conclude } from './conclude.ts';

/**
 * Returns when v2 first sent the majority of responses after an edit, in a window of at least 20 requests; a share of one tenth exceeds half once in
 * a million times.
 */
function inForceAt({ timeline, startedAt }: LoadReport, editedAt: number): number | undefined {
  const since = timeline.filter(({ atMs }) => atMs >= editedAt - startedAt);
  return since.find((_, index) => {
    const window: TimelineSlice[] = [];
    for (let i = index; i >= 0 && totalOf(window) < 20; i--) window.push(since[i]!);
    const v2 = window.reduce((sum, { versions }) => sum + (versions.v2 ?? 0), 0);
    return totalOf(window) >= 20 && v2 > totalOf(window) / 2;
  })?.atMs;
}

const totalOf = (slices: readonly TimelineSlice[]): number => slices.reduce((sum, { total }) => sum + total, 0);

describe.each([
  ['state of the world', false],
  ['delta', true],
])('requests with %s xDS', (_, delta) => {
  let mesh: Mesh;

  beforeAll(async () => {
    mesh = await startMesh({ delta });
  });

  afterAll(() => conclude(mesh));

  test('reach v1 and v2 by the weights in the file, and an edit applies within a second', async () => {
    const load = await mesh.startLoad({
      target: mesh.httpTarget,
      clients: [{ kind: 'ka', count: 4 }],
      maxDurationMs: 240_000,
    });
    await sleep(1_500);
    await eventually('there are enough requests to judge shares by', async () => (await load.report()).total > 300);
    const editedAt = mesh.directory.setWeights({ v1: 20, v2: 80 });
    await eventually('the new weights hold', async () => inForceAt(await load.report(), editedAt));
    await sleep(2_500);
    const report = await load.stop();
    expect(report.failed).toBe(0);

    const at = (wallClock: number): number => wallClock - report.startedAt;
    const share = (fromMs: number, untilMs: number): { v2: number; total: number } => {
      const slices = report.timeline.filter((s) => s.atMs >= fromMs && s.atMs < untilMs);
      const total = slices.reduce((sum, s) => sum + s.total, 0);
      return { v2: slices.reduce((sum, s) => sum + (s.versions.v2 ?? 0), 0) / total, total };
    };
    const shareBefore = share(0, at(editedAt) - 100);
    const newAt = inForceAt(report, editedAt)!;
    // Excludes the slice that detected the change, because it was selected by its share.
    const shareAfter = share(newAt + 100, report.durationMs);
    const inForceMs = Math.round(newAt - at(editedAt));
    console.log(
      `after ${inForceMs} ms; share of v2: ${shareBefore.v2.toFixed(3)} of ${shareBefore.total}, then ${shareAfter.v2.toFixed(3)} of ${shareAfter.total}`,
    );
    // Includes the detection window and delays on a busy machine; the long form requires one second.
    expect(inForceMs).toBeLessThan(sized({ short: 5_000, full: 1_000 }));
    expect(shareBefore.total).toBeGreaterThan(200);
    // Four standard deviations of a binomial at these numbers of requests.
    expect(Math.abs(shareBefore.v2 - 0.1)).toBeLessThan(4 * Math.sqrt((0.1 * 0.9) / shareBefore.total));
    expect(Math.abs(shareAfter.v2 - 0.8)).toBeLessThan(4 * Math.sqrt((0.8 * 0.2) / shareAfter.total));
  });
});
