/**
 * What each file costs: `CHARTPILOT_TEST_CPU=FILE npm test` appends a line of JSON for each of them. Seconds of a clock say
 * little of a machine that does other things as well; processor time says what a file takes, and the rest is waiting.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

const into = process.env.CHARTPILOT_TEST_CPU;
const ticksPerSecond = 100;

/** Seconds that this process has taken, and its children that have ended. */
function cpuSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
}

if (into !== undefined) {
  let begun = 0;
  let cpu = 0;
  beforeAll(() => {
    [begun, cpu] = [performance.now(), cpuSeconds()];
  });
  afterAll(() => {
    const file = relative(packageRoot(), expect.getState().testPath ?? '');
    const seconds = Number(((performance.now() - begun) / 1_000).toFixed(2));
    appendFileSync(into, `${JSON.stringify({ file, seconds, cpu: Number((cpuSeconds() - cpu).toFixed(2)) })}\n`);
  });
}
