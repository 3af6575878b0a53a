import { readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { BaseIdTable } from './base-id-table.ts';

function options(): { runDir: string; withSpare: boolean } {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return { runDir: temporary.path, withSpare: true };
}

/** Whether another agent could claim it. */
async function isFree(baseId: number): Promise<boolean> {
  const other = new BaseIdTable();
  try {
    await other.claim({ ...options(), baseId, withSpare: false });
    return true;
  } catch {
    return false;
  } finally {
    other.releaseAll();
  }
}

test('releases all base IDs of a claim together, and keeps those of other claims', async () => {
  const table = new BaseIdTable();
  onTestFinished(() => table.releaseAll());
  const one = await table.claim(options());
  const secondClaim = await table.claim(options());
  expect(one.baseIds).toHaveLength(2);
  table.release([one.baseIds[0]!]);
  expect(await Promise.all([...one.baseIds, ...secondClaim.baseIds].map(isFree))).toEqual([true, true, false, false]);
});

test('releases each base ID once when the agent exits', async () => {
  const table = new BaseIdTable();
  const { baseIds } = await table.claim(options());
  table.releaseAll();
  const next = new BaseIdTable();
  onTestFinished(() => next.releaseAll());
  await next.claim({ ...options(), baseId: baseIds[0]!, withSpare: false });
  table.release(baseIds);
  table.releaseAll();
  expect(await isFree(baseIds[0]!)).toBe(false);
});

test('releases base IDs if their claim completes while the agent exits', async () => {
  const table = new BaseIdTable();
  const runOptions = options();
  const claiming = table.claim(runOptions);
  await table.waitUntilSettled();
  table.releaseAll();
  const { baseIds } = await claiming;
  expect(await Promise.all(baseIds.map(isFree))).toEqual([true, true]);
  expect(readdirSync(runOptions.runDir)).toEqual([]);
});

test('lets the agent exit after a failed claim', async () => {
  const table = new BaseIdTable();
  const claiming = table.claim({ ...options(), baseId: 65_536, runDir: '/proc/none' }).catch(() => 'refused');
  await table.waitUntilSettled();
  expect(await claiming).toBe('refused');
});
