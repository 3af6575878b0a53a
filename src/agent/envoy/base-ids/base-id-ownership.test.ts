/** Agents of one container resume a base ID whose name an unrelated process has taken. Exactly one of them owns it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { claimBaseId, resumeBaseIds } from './base-ids.ts';

/** Base IDs that no other test uses. */
let next = 53_000 + (process.pid % 1_000) * 7;
const freshId = (): number => next++;

function runDir(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

/** Takes the name of a base ID from a process that is not a sibling of this one. */
async function takeName(baseId: number): Promise<Server> {
  const server = createServer().listen({ path: `\0chartpilot_base_id_${baseId}` });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return server;
}

const module = JSON.stringify(new URL('./base-ids.ts', import.meta.url).href);

/** Starts agents at the same time with one parent. Each reports whether it owns the base ID, and keeps it. */
async function agents(count: number, { folder, baseId }: { folder: string; baseId: number }) {
  const startAt = Date.now() + 1_500;
  const script = `
    import { resumeBaseIds } from ${module};
    await new Promise((begin) => setTimeout(begin, ${startAt} - Date.now()));
    const resumed = await resumeBaseIds({ runDir: ${JSON.stringify(folder)}, resumeLimitMs: 1_500 }, [${baseId}]);
    console.log(resumed === undefined ? 'none' : 'has it');
    setInterval(() => {}, 1_000);`;
  return Promise.all(
    new Array(count).fill(script).map(async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const [line] = (await once(child.stdout!, 'data')) as [Buffer];
      return { child, has: line.toString().trim() === 'has it' };
    }),
  );
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('resumes a base ID whose abstract socket an unrelated process has, reports this, and releases all abstract sockets', async () => {
  const [folder, baseId] = [runDir(), freshId()];
  await takeName(baseId);
  const reportedIds: number[] = [];
  const resumed = await resumeBaseIds(
    { runDir: folder, resumeLimitMs: 300, onForeignName: (id) => reportedIds.push(id) },
    [baseId, freshId()],
  );
  expect([resumed?.baseIds[0], reportedIds]).toEqual([baseId, [baseId]]);
  const isNamePresent = (): boolean => new RegExp(`_id_${baseId}_`).test(readFileSync('/proc/net/unix', 'utf8'));
  expect(isNamePresent()).toBe(true);
  resumed?.handOver();
  await eventually('its names are free', () => !isNamePresent());
});

test('waits for a base ID that the kernel releases shortly after its owner was killed', async () => {
  const [folder, baseId] = [runDir(), freshId()];
  const server = await takeName(baseId);
  const reportedIds: number[] = [];
  setTimeout(() => void server.close(), 30);
  const resumed = await resumeBaseIds({ runDir: folder, onForeignName: (id) => reportedIds.push(id) }, [baseId]);
  onTestFinished(() => resumed?.release());
  expect([resumed?.baseIds, reportedIds]).toEqual([[baseId], []]);
});

test("finds the base ID of a killed agent until the agent's last thread has exited", async () => {
  const baseId = freshId();
  // The main thread exits first, as in a killed process; another thread keeps the descriptors.
  const script = `
import ctypes, socket, threading, time
server = socket.socket(socket.AF_UNIX); server.bind('\\0chartpilot_base_id_${baseId}'); server.listen()
threading.Thread(target=lambda: time.sleep(60)).start()
print('held', flush=True)
ctypes.CDLL(None).pthread_exit(None)`;
  const agent = spawn('python3', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void agent.kill('SIGKILL'));
  await once(agent.stdout, 'data');
  await eventually('its first thread has ended', () =>
    /^State:\tZ/m.test(readFileSync(`/proc/${agent.pid}/status`, 'utf8')),
  );
  // The check runs in a sibling of the agent: another child of this process.
  const sibling = `
    import { areHeldBySibling } from ${JSON.stringify(new URL('./base-id-owners.ts', import.meta.url).href)};
    console.log(areHeldBySibling([${baseId}]));`;
  const siblingProcess = spawn(process.execPath, ['--input-type=module', '-e', sibling], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(siblingProcess.stdout, 'data')) as [Buffer];
  expect(output.toString().trim()).toBe('true');
});

test('lets exactly one of several agents resume a base ID whose abstract socket an unrelated process has, and the next one only after that agent is killed', async () => {
  const [folder, baseId] = [runDir(), freshId()];
  const server = await takeName(baseId);
  const first = await agents(4, { folder, baseId });
  expect(first.filter(({ has }) => has)).toHaveLength(1);
  // The unrelated process has released the name, but the name alone gives no ownership.
  server.close();
  await sleep(50);
  const secondAgents = await agents(2, { folder, baseId });
  expect(secondAgents.filter(({ has }) => has)).toEqual([]);
  await expect(claimBaseId({ runDir: runDir(), baseId })).rejects.toThrow('in use');
  for (const { child } of first) await kill(child);
  expect((await agents(2, { folder, baseId })).filter(({ has }) => has)).toHaveLength(1);
});

test('lets no other agent of the container claim a base ID that an agent owns', async () => {
  const [folder, baseId] = [runDir(), freshId()];
  expect((await agents(3, { folder, baseId })).filter(({ has }) => has)).toHaveLength(1);
  expect((await agents(2, { folder, baseId })).filter(({ has }) => has)).toEqual([]);
});
