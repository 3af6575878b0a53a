import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { packageRoot } from '../runtime/package-root.ts';

/** The program as people run it, from the bundle that `npm test` has made. */
const chartpilot = (...args: string[]) => execa(join(packageRoot(), 'bin/chartpilot'), args, { reject: false });

test('chartpilot explore walks through the agent, with a second thread', async () => {
  const { exitCode, stdout, stderr } = await chartpilot('explore', '--triggers', '1', '--faults', '0');
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^explore: complete, no violation and no livelock \(1 triggers, 0 faults, 0 stops\): \d{3,} states/,
  );
  expect(exitCode).toBe(0);
});

test('chartpilot explore that has not seen everything says so', async () => {
  const { stdout } = await chartpilot('explore', '--triggers', '1', '--limit', '100');
  expect(stdout).toContain('NOT complete');
});
