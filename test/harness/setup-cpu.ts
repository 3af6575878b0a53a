/**
 * Reports the cost of each test file: `CHARTPILOT_TEST_CPU=FILE npm test` appends a line of JSON per file, with its tests that cost a second or more.
 * Wall-clock time means little on a busy machine; processor time is a file's cost, and the rest is waiting. The cost is too low for tests with
 * browsers, whose processes this one does not reap.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

const cpuReportPath = process.env.CHARTPILOT_TEST_CPU;
const ticksPerSecond = 100;

/** Processor seconds of this process, and of its exited children. */
function cpuSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
}

if (cpuReportPath !== undefined) {
  let startedAt = 0;
  let cpu = 0;
  let cpuOfTest = 0;
  const dear: Record<string, number> = {};
  beforeAll(() => {
    [startedAt, cpu] = [performance.now(), cpuSeconds()];
  });
  beforeEach(() => {
    cpuOfTest = cpuSeconds();
  });
  afterEach(({ task }) => {
    const usedSeconds = cpuSeconds() - cpuOfTest;
    if (usedSeconds >= 1) dear[task.name] = Number(usedSeconds.toFixed(2));
  });
  afterAll(() => {
    const file = relative(packageRoot(), expect.getState().testPath ?? '');
    const seconds = Number(((performance.now() - startedAt) / 1_000).toFixed(2));
    appendFileSync(
      cpuReportPath,
      `${JSON.stringify({ file, seconds, cpu: Number((cpuSeconds() - cpu).toFixed(2)), dear })}\n`,
    );
  });
}
