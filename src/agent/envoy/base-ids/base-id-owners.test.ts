import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { areHeldBySibling, parentOf } from './base-id-owners.ts';

/** No other base ID of this test starts with this digit. */
const baseId = 90_000 + (process.pid % 9_000);
const hold = `require('node:net').createServer().listen({ path: '\\0chartpilot_base_id_${baseId}' }, () => console.log('held'))`;

test('detects only base IDs that a sibling process owns', async () => {
  const siblingScript = `import(${JSON.stringify(new URL('./base-id-owners.ts', import.meta.url).href)}).then(({ areHeldBySibling: are }) =>
    console.log(JSON.stringify([are([${baseId}]), are([7, ${baseId}]), are([${Math.floor(baseId / 10)}]), are(undefined)])))`;
  const holderProcess = spawn(process.execPath, ['-e', hold], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void holderProcess.kill('SIGKILL'));
  await once(holderProcess.stdout, 'data');
  const sibling = spawn(process.execPath, ['-e', siblingScript], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = (await once(sibling.stdout, 'data')) as [Buffer];
  expect(JSON.parse(output.toString())).toEqual([true, true, false, true]);
  // A child is not a sibling.
  expect(parentOf(holderProcess.pid!)).toBe(process.pid);
  expect(areHeldBySibling([baseId])).toBe(false);
  holderProcess.kill('SIGKILL');
  await once(holderProcess, 'exit');
  expect(areHeldBySibling([baseId])).toBe(false);
});

test('ignores base IDs of the current process, and finds no parent of an exited process', async () => {
  const server = createServer().listen({ path: `\0chartpilot_base_id_${baseId + 9_000}` });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  expect(areHeldBySibling([baseId + 9_000])).toBe(false);
  expect(parentOf(2 ** 22)).toBeUndefined();
});
