/** Issue 33, item 13: hostile files of another user in /dev/shm and in a shared run directory. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { asOtherUser } from '../../../test/harness/other-user.ts';
import { requireFolders } from '../options/requirements.ts';
import { claimBaseId } from './base-ids/base-ids.ts';
import { AgentRecord } from './record/agent-record.ts';
import { containerIdentity } from './record/other-records.ts';

/** A folder with the permissions of /dev/shm: all users may create files, and only owners may remove them. */
function sharedFolder(): { path: string; victim: string } {
  const path = mkdtempSync(join(tmpdir(), 'shared-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  chmodSync(path, 0o1777);
  const victim = join(path, 'of-root');
  writeFileSync(victim, 'content of root', { mode: 0o600 });
  return { path, victim };
}

test('does not follow a symbolic link in /dev/shm when checking shared memory', async () => {
  const { path, victim } = sharedFolder();
  await asOtherUser(`ln -s ${victim} ${path}/.chartpilot-${process.pid}`);
  requireFolders({ runDir: join(path, 'run'), configPath: undefined, hotRestart: true, sharedMemoryDir: path });
  expect(readFileSync(victim, 'utf8')).toBe('content of root');
});

test('does not follow a symbolic link in the run directory when locking a base ID', async () => {
  const { path, victim } = sharedFolder();
  const baseId = 61_234;
  await asOtherUser(`ln -s ${victim} ${path}/base-id-${baseId}.${process.pid}`);
  const claim = await claimBaseId({ runDir: path, baseId, sharedMemoryDir: path });
  claim.release();
  expect(readFileSync(victim, 'utf8')).toBe('content of root');
});

/** Runs in a separate process, because a blocked read ends only with its process. */
async function exitsInTime(script: string): Promise<boolean> {
  const args = ['--input-type=module', '-e', script];
  const { timedOut, failed, stderr } = await execa(process.execPath, args, {
    reject: false,
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  if (failed && !timedOut) throw new Error(stderr);
  return !timedOut;
}

const moduleIn = (file: string): string => JSON.stringify(join(import.meta.dirname, file));

test('does not block if a lock is a FIFO', async () => {
  const { path } = sharedFolder();
  const baseId = 61_235;
  await asOtherUser(`mkfifo -m 666 ${path}/base-id-${baseId}`);
  const options = JSON.stringify({ runDir: path, sharedMemoryDir: path });
  const script = `const { claimBaseId } = await import(${moduleIn('base-ids/base-ids.ts')}); (await claimBaseId(${options})).release();`;
  expect(await exitsInTime(script)).toBe(true);
});

test('does not block if shared memory is a FIFO', async () => {
  const { path } = sharedFolder();
  await asOtherUser(`mkfifo -m 666 ${path}/envoy_shared_memory_10`);
  const call = `isMarkedInitializing(1, ${JSON.stringify(path)})`;
  const script = `const { isMarkedInitializing } = await import(${moduleIn('base-ids/shared-memory.ts')}); ${call};`;
  expect(await exitsInTime(script)).toBe(true);
});

test('rejects a record directory of another user, because it names processes to run and kill', async () => {
  const { path } = sharedFolder();
  await asOtherUser(`mkdir -m 777 ${path}/live-restore-${containerIdentity()}`);
  expect(() => new AgentRecord(path)).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: expect.stringContaining(path) }),
  );
  expect(() => new AgentRecord(path)).toThrow('owner must be uid 0, got uid 65534');
});
