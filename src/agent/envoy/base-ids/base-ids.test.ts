import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import {
  type BaseIdOptions,
  type ClaimedBaseId,
  claimBaseId,
  claimBaseIds,
  resumeBaseIds,
  startTimeOf,
} from './base-ids.ts';

/** A host with its own run directory and shared memory in a temporary folder. */
function host(): { options: BaseIdOptions; runDir: string; memory: (baseId: number) => string } {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const runDir = join(folder.path, 'run');
  const sharedMemoryDir = join(folder.path, 'shm');
  mkdirSync(runDir);
  mkdirSync(sharedMemoryDir);
  return {
    options: { runDir, sharedMemoryDir, sweepLimitMs: 200 },
    runDir,
    memory: (baseId) => join(sharedMemoryDir, `envoy_shared_memory_${baseId * 10}`),
  };
}

async function claim(options: BaseIdOptions): Promise<ClaimedBaseId> {
  const claimedId = await claimBaseId(options);
  onTestFinished(() => claimedId.release());
  return claimedId;
}

function leaveLock(runDir: string, baseId: number, owner: { pid: number; startTime: string }): string {
  const lock = join(runDir, `base-id-${baseId}`);
  writeFileSync(lock, JSON.stringify(owner));
  return lock;
}

const dead = { pid: 2 ** 22, startTime: '1' };

test('assigns different base IDs to two agents of a host', async () => {
  const { options } = host();
  const [one, secondClaim] = await Promise.all([claim(options), claim(options)]);
  expect(one.baseId).not.toBe(secondClaim.baseId);
});

test('assigns different base IDs to agents with different run directories', async () => {
  const requested = 40_000 + (process.pid % 1_000);
  await claim({ ...host().options, baseId: requested });
  await expect(claim({ ...host().options, baseId: requested })).rejects.toThrow(
    codedError('BASE_IDS_EXHAUSTED', { path: '--baseId', got: String(requested) }),
  );
});

test('removes the lock and the shared memory on release, and frees the base ID', async () => {
  const { options, runDir, memory } = host();
  const claimedId = await claim(options);
  writeFileSync(memory(claimedId.baseId), 'x');
  claimedId.release();
  expect(existsSync(memory(claimedId.baseId))).toBe(false);
  expect(readdirSync(runDir)).toEqual([]);
  await expect(claim({ ...options, baseId: claimedId.baseId })).resolves.toMatchObject({ baseId: claimedId.baseId });
});

test('frees the base ID even if its files cannot be removed', async () => {
  const { options, runDir } = host();
  const { baseId, release } = await claimBaseId(options);
  rmSync(runDir, { recursive: true });
  writeFileSync(runDir, '');
  expect(release).not.toThrow();
  const secondClaim = await claimBaseId({ ...options, runDir: join(runDir, '..', 'other'), baseId });
  secondClaim.release();
});

test('reports the name of the flag if the run directory is not writable', async () => {
  const { options, runDir } = host();
  const freeClaim = await claimBaseId(options);
  freeClaim.release();
  mkdirSync(join(runDir, `base-id-${freeClaim.baseId}.${process.pid}`));
  await expect(claimBaseId({ ...options, baseId: freeClaim.baseId })).rejects.toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: runDir }),
  );
});

test('writes the PID and start time of the owner to the lock', async () => {
  const { options, runDir } = host();
  const { baseId } = await claim(options);
  const owner = JSON.parse(readFileSync(join(runDir, `base-id-${baseId}`), 'utf8')) as unknown;
  const stat = readFileSync(`/proc/${process.pid}/stat`, 'utf8');
  const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  expect(owner).toEqual({ pid: process.pid, startTime });
});

// On an idle host the kernel may finish before the check, so repeat it.
test.each([1, 2, 3, 4])(
  'reports no start time for an exiting process while the kernel frees its memory (run %i)',
  async () => {
    const megabytes = 200;
    const child = spawn(process.execPath, [
      ...[
        '-e',
        `globalThis.held = Buffer.alloc(${megabytes} * 2 ** 20, 1); console.log('ready'); setInterval(() => {}, 1e6);`,
      ],
    ]);
    const exit = once(child, 'exit');
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    expect(startTimeOf(child.pid!)).toMatch(/^\d+$/);
    child.kill('SIGKILL');
    // /proc/PID/cmdline is empty once the memory is freed. The process is not reaped before this loop ends.
    const cleared = (): boolean => readFileSync(`/proc/${child.pid}/cmdline`, 'utf8') === '';
    const deadline = performance.now() + 60_000;
    while (!cleared() && performance.now() < deadline);
    expect(startTimeOf(child.pid!)).toBeUndefined();
    await exit;
    expect(startTimeOf(child.pid!)).toBeUndefined();
  },
);

describe('base IDs of an agent', () => {
  test('are the requested one and a spare, and are released together', async () => {
    const { options, runDir, memory } = host();
    const requested = 41_000 + (process.pid % 1_000);
    const claimedIds = await claimBaseIds({ ...options, baseId: requested, withSpare: true });
    onTestFinished(() => claimedIds.release());
    const [first, spare, ...otherIds] = claimedIds.baseIds;
    expect([first, otherIds]).toEqual([requested, []]);
    expect(spare).not.toBe(requested);
    expect(readdirSync(runDir).sort()).toEqual([`base-id-${first}`, `base-id-${spare}`].sort());
    for (const baseId of claimedIds.baseIds) writeFileSync(memory(baseId), 'x');
    await expect(claim({ ...options, baseId: spare! })).rejects.toThrow('in use');
    claimedIds.release();
    expect(readdirSync(runDir)).toEqual([]);
    expect(claimedIds.baseIds.filter((baseId) => existsSync(memory(baseId)))).toEqual([]);
  });

  test('include no spare without `withSpare`', async () => {
    const claimedIds = await claimBaseIds({ ...host().options, withSpare: false });
    onTestFinished(() => claimedIds.release());
    expect(claimedIds.baseIds).toHaveLength(1);
  });

  test('are both removed after the agent is killed', async () => {
    const { options, runDir, memory } = host();
    const leftoverFiles = [50_007, 50_008].flatMap((baseId) => {
      writeFileSync(memory(baseId), 'x');
      return [memory(baseId), leaveLock(runDir, baseId, dead)];
    });
    const claimedIds = await claimBaseIds({ ...options, withSpare: true });
    onTestFinished(() => claimedIds.release());
    expect([...claimedIds.sweptFiles].sort()).toEqual(leftoverFiles.sort());
  });
});

describe('clean-up after killed agents', () => {
  test('removes the lock and shared memory of a killed agent, and returns their names', async () => {
    const { options, runDir, memory } = host();
    const lock = leaveLock(runDir, 50_001, dead);
    writeFileSync(memory(50_001), 'x');
    const { sweptFiles } = await claim(options);
    expect(sweptFiles).toEqual([memory(50_001), lock]);
    expect(existsSync(lock) || existsSync(memory(50_001))).toBe(false);
  });

  test('removes a lock whose PID belongs to another process now', async () => {
    const { options, runDir } = host();
    const lock = leaveLock(runDir, 50_002, { pid: process.pid, startTime: '1' });
    expect((await claim(options)).sweptFiles).toEqual([lock]);
  });

  test('removes an incomplete lock', async () => {
    const { options, runDir } = host();
    writeFileSync(join(runDir, 'base-id-50003'), '{"pid":');
    expect((await claim(options)).sweptFiles).toHaveLength(1);
  });

  test('keeps the lock and shared memory of a running agent', async () => {
    const { options, runDir, memory } = host();
    const { baseId } = await claim(options);
    writeFileSync(memory(baseId), 'x');
    const { sweptFiles } = await claim(options);
    expect(sweptFiles).toEqual([]);
    expect(existsSync(memory(baseId))).toBe(true);
    expect(readdirSync(runDir)).toHaveLength(2);
  });

  test('cleans up a killed agent only after its Envoy has exited', async () => {
    const { options, runDir, memory } = host();
    leaveLock(runDir, 50_004, dead);
    writeFileSync(memory(50_004), 'x');
    // Name of a socket of an Envoy with this base ID.
    const envoy = createServer();
    envoy.listen({ path: '\0envoy_domain_socket_parent_500041' });
    await once(envoy, 'listening');
    expect((await claim(options)).sweptFiles).toEqual([]);
    expect(existsSync(memory(50_004))).toBe(true);
    const pendingClaim = claim({ ...options, sweepLimitMs: 5_000 });
    await sleep(100);
    envoy.close();
    expect((await pendingClaim).sweptFiles).toHaveLength(2);
  });

  test('does not hold the name of a base ID while waiting for the Envoys of a killed agent', async () => {
    const { options, runDir } = host();
    leaveLock(runDir, 50_011, dead);
    const envoy = createServer();
    envoy.listen({ path: '\0envoy_domain_socket_parent_500111' });
    await once(envoy, 'listening');
    const pendingClaim = claim({ ...options, sweepLimitMs: 5_000 });
    await sleep(100);
    const foreignNames: number[] = [];
    // The next agent in the container of the killed agent resumes the base ID.
    const resumed = await resumeBaseIds({ runDir, onForeignName: (id) => foreignNames.push(id) }, [50_011]);
    resumed?.handOver();
    envoy.close();
    await pendingClaim;
    expect([resumed?.baseIds, foreignNames]).toEqual([[50_011], []]);
  });

  test('frees the base ID of a killed agent without delay', async () => {
    const { options, runDir } = host();
    const script = `
      import { claimBaseId } from ${JSON.stringify(join(import.meta.dirname, 'base-ids.ts'))};
      const { baseId } = await claimBaseId(${JSON.stringify(options)});
      console.log(baseId);
      setInterval(() => {}, 1000);`;
    const agent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void agent.kill('SIGKILL'));
    const [line] = (await once(agent.stdout, 'data')) as [Buffer];
    const baseId = Number(line.toString());
    await expect(claim({ ...options, baseId })).rejects.toThrow(new RegExp(`in use by process ${agent.pid}`));
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    const { sweptFiles } = await claim({ ...options, baseId });
    expect(sweptFiles).toEqual([join(runDir, `base-id-${baseId}`)]);
  });
});

describe('base IDs that other processes use', () => {
  test('are not claimed on request while an Envoy uses their sockets', async () => {
    const { options } = host();
    const envoy = createServer();
    envoy.listen({ path: '\0envoy_domain_socket_child_500052' });
    await once(envoy, 'listening');
    onTestFinished(() => void envoy.close());
    await expect(claim({ ...options, baseId: 50_005 })).rejects.toThrow(
      codedError('BASE_IDS_EXHAUSTED', { path: '--baseId', got: '50005' }),
    );
  });

  test('are claimed only on request if shared memory of unknown origin exists', async () => {
    const { options, memory } = host();
    writeFileSync(memory(50_006), 'x');
    await expect(claim({ ...options, baseId: 50_006 })).resolves.toMatchObject({ baseId: 50_006 });
  });
});
