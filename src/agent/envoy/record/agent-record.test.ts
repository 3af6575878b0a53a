import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PersistedState } from '../../../../machines/agent/envoy/adoption.ts';
import type { EpochRecord } from '../../../../machines/agent/envoy/epoch-record.ts';
import { randomOf } from '../../../../test/churn/churn-mesh.ts';
import { temporaryFolder, temporaryScratch } from '../../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { hostMs } from '../../../runtime/host-clock.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { DetachedEnvoy, withdrawStart } from '../detached-envoy.ts';
import { openDetachedChannels } from '../output/output-channels.ts';
import { AgentRecord, parseRecord } from './agent-record.ts';
import { OtherRecords } from './other-records.ts';
import { markAlive, ownerStateOf } from './record-owner.ts';

const live: EpochRecord = {
  ...{ name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 100, digest: 'd', binary: 'first', orders: 0 },
  ...{ phase: 'live', doomed: false },
};

const stateWith = (...epochs: EpochRecord[]): PersistedState => ({
  ...{ desired: { digest: 'd', orders: 0, binary: 'first' }, epochs, recovery: 'none' },
  ...{ provenDigest: 'd', provenBinary: 'first' },
});

const sources = { binaries: { describe: () => [] } };

function runDirectory(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

/** Starts `sleep` in place of Envoy. */
async function startProcess(record: AgentRecord, epoch: number): Promise<DetachedEnvoy> {
  const channels = openDetachedChannels(temporaryScratch(), false)!;
  const folder = record.recordStart({ ...live, epoch, configFile: 'envoy.json' });
  const heldEnvoy = DetachedEnvoy.start(folder, ['sleep', '60'], channels);
  channels.release();
  onTestFinished(async () => {
    // The shell writes the exit code before the folder is removed.
    if (heldEnvoy.kill('SIGKILL')) await once(heldEnvoy, 'exit');
  });
  await new Promise<void>((resolve) => heldEnvoy.once('spawn', resolve));
  return heldEnvoy;
}

/** An agent with a process for epoch 0. */
async function agentWithProcess(): Promise<{
  runDir: string;
  directory: string;
  held: DetachedEnvoy;
  record: AgentRecord;
}> {
  const runDir = runDirectory();
  const record = new AgentRecord(runDir);
  record.startRecording([7, 8], sources);
  record.recordState(stateWith({ ...live, phase: 'starting' }));
  const heldEnvoy = await startProcess(record, 0);
  record.recordState(stateWith(live));
  return { runDir, directory: join(runDir, readdirSync(runDir)[0]!), held: heldEnvoy, record };
}

const isAlive = (pid: number | undefined): boolean => pid !== undefined && startTimeOf(pid) !== undefined;

describe('record of a killed agent', () => {
  test('restores epochs with their processes and times', async () => {
    const { runDir, held } = await agentWithProcess();
    const foundRecord = await new AgentRecord(runDir).read();
    expect(foundRecord).toMatchObject({ baseIds: [7, 8] });
    const times = { startedAtMs: expect.any(Number), elapsedMs: expect.any(Number), unseenMs: 0 };
    expect(foundRecord?.adoption.epochs).toEqual([{ ...live, configFile: 'envoy.json', ...times }]);
    expect(foundRecord?.pidOf(live)).toBe(held.pid);
  });

  test('restores an epoch even if an earlier process of the epoch left its folder', async () => {
    const { runDir, record, held } = await agentWithProcess();
    held.kill('SIGKILL');
    await once(held, 'exit');
    const next = await startProcess(record, 0);
    record.recordState(stateWith(live));
    const foundRecord = await new AgentRecord(runDir).read();
    expect(foundRecord?.pidOf(live)).toBe(next.pid);
    expect(isAlive(next.pid)).toBe(true);
  });

  test('is removed when an agent exits normally', async () => {
    const { runDir, record, held } = await agentWithProcess();
    held.kill('SIGKILL');
    await new Promise((resolve) => held.once('exit', resolve));
    record.close();
    expect(readdirSync(runDir)).toEqual([]);
    expect(new AgentRecord(runDir).exists).toBe(false);
  });

  test('omits an epoch whose process never started', async () => {
    const { runDir, record } = await agentWithProcess();
    record.recordState(stateWith(live, { ...live, name: 'epoch-1', epoch: 1, phase: 'starting' }));
    const foundRecord = await new AgentRecord(runDir).read();
    expect(foundRecord?.adoption.epochs.map(({ name }) => name)).toEqual(['epoch-0']);
  });

  test('omits a draining parent whose exit was handled, and restores the serving epoch', async () => {
    const { runDir, record, held } = await agentWithProcess();
    const parent: EpochRecord = { ...live, name: 'epoch-1', epoch: 1, phase: 'leaving' };
    record.recordState(stateWith(live, parent));
    const foundRecord = await new AgentRecord(runDir).read();
    expect(foundRecord?.adoption.epochs.map(({ name }) => name)).toEqual(['epoch-0']);
    expect(isAlive(held.pid)).toBe(true);
  });

  test('contains how long a child may have been live unobserved before its parent drained', async () => {
    const { runDir, record } = await agentWithProcess();
    const startedFrom = hostMs();
    await startProcess(record, 1);
    const readEpochs = async () => (await new AgentRecord(runDir).read())?.adoption.epochs ?? [];
    const child = { ...live, name: 'epoch-1', epoch: 1 };
    record.recordState(stateWith(live, { ...child, phase: 'starting' }));
    const [, starting] = await readEpochs();
    expect(starting?.startedAtMs).toBeGreaterThanOrEqual(startedFrom);
    await sleep(60);
    record.recordState(stateWith({ ...live, phase: 'leaving' }, child));
    const [remainingEpoch] = await readEpochs();
    expect(remainingEpoch?.unseenMs).toBeGreaterThanOrEqual(60);
    await sleep(60);
    expect(await readEpochs()).toMatchObject([
      { unseenMs: remainingEpoch?.unseenMs },
      { startedAtMs: starting?.startedAtMs },
    ]);
  });

  test('restarts the drain time of the parent when a new child is live in place of a failed one', async () => {
    const { runDir, record } = await agentWithProcess();
    const parent = { ...live, phase: 'leaving' } as const;
    const child = { ...live, name: 'epoch-1', epoch: 1 };
    const readEpochs = async () => (await new AgentRecord(runDir).read())?.adoption.epochs ?? [];
    await startProcess(record, 1);
    record.recordState(stateWith(parent, child));
    record.recordState(stateWith(parent));
    await sleep(120);
    record.recordState(stateWith(parent, { ...child, phase: 'starting' }));
    const [parentEpoch] = await readEpochs();
    expect(parentEpoch?.elapsedMs).toBeGreaterThanOrEqual(120);
    const readAtMs = hostMs();
    record.recordState(stateWith(parent, child));
    const [restarted] = await readEpochs();
    expect(restarted?.elapsedMs).toBeLessThanOrEqual(hostMs() - readAtMs);
  });

  test.each([
    ['truncated', (text: string) => text.slice(0, text.length / 2)],
    ['of another format', (text: string) => text.replace('"format":3', '"format":2')],
    ['empty', () => ''],
    ['not an object', () => '[]'],
    ['too long', (text: string) => `${text}${' '.repeat(70_000)}`],
    ['naming an epoch twice', (text: string) => text.replace(/"epochs":\[(.*?)\]/, '"epochs":[$1,$1]')],
    ['naming a folder outside of its directory', (text: string) => text.replace(/"folder":"/g, '"folder":"../')],
    ['naming the base ID of another agent', (text: string) => text.replace('"baseIds":[7,8]', '"baseIds":[8,9]')],
    ['naming an unknown phase', (text: string) => text.replace('"live"', '"asleep"')],
    ['without the processes of its folders', (text: string) => text.replace(/"processes":\[.*?\]/, '"processes":[]')],
  ])('is rejected, and its processes are killed, if the file is %s', async (_, change) => {
    const { runDir, directory, held } = await agentWithProcess();
    const file = join(directory, 'record.json');
    const text = readFileSync(file, 'utf8');
    expect(change(text)).not.toBe(text);
    writeFileSync(file, change(text));
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    await eventually('its process is gone', () => !isAlive(held.pid));
    expect(existsSync(file)).toBe(false);
  });

  test('is rejected if its directory contains an unknown Envoy folder', async () => {
    const { runDir, directory, held } = await agentWithProcess();
    mkdirSync(join(directory, 'envoy-7-9-1-1-1'));
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    await eventually('its process is gone', () => !isAlive(held.pid));
  });

  test('is rejected by killing shell and Envoy together, because an Envoy without its shell ends its parent', async () => {
    const runDir = runDirectory();
    const record = new AgentRecord(runDir);
    record.startRecording([7, 8], sources);
    const [ready, terminated] = [join(runDir, 'ready'), join(runDir, 'terminated')];
    // Receives SIGTERM when its shell exits, as Envoy does.
    const tied = `trap 'echo >${terminated}; exit' TERM; echo >${ready}; while :; do sleep 0.01; done`;
    const folder = record.recordStart({ ...live, configFile: 'envoy.json' });
    const channels = openDetachedChannels(temporaryScratch(), false)!;
    const heldEnvoy = DetachedEnvoy.start(folder, ['setpriv', '--pdeathsig', 'TERM', 'sh', '-c', tied], channels);
    channels.release();
    await once(heldEnvoy, 'spawn');
    await eventually('it is tied', () => existsSync(ready));
    const { pid } = heldEnvoy;
    rmSync(join(folder, 'envoy'));
    expect(record.endAll()).toHaveLength(1);
    await eventually('it is gone', () => !isAlive(pid));
    expect(existsSync(terminated)).toBe(false);
  });

  test('leaves a process alone if its start time differs', async () => {
    const { runDir, directory, held } = await agentWithProcess();
    const folder = readdirSync(directory).find((name) => name.startsWith('envoy-'))!;
    writeFileSync(join(directory, folder, 'envoy'), `${process.pid} 1\n`);
    writeFileSync(join(directory, 'record.json'), '');
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    expect(isAlive(process.pid)).toBe(true);
    await eventually('what its shell did start is gone with it', () => !isAlive(held.pid));
  });
});

test('reports the exit code of an adopted process, even if it exited before the adoption', async () => {
  const runDir = runDirectory();
  const start = (...command: string[]): DetachedEnvoy => {
    const channels = openDetachedChannels(temporaryScratch(), false)!;
    const heldEnvoy = DetachedEnvoy.start(
      join(runDir, `envoy-${command.join('-').replace(/\W/g, '-')}`),
      command,
      channels,
    );
    channels.release();
    return heldEnvoy;
  };
  const exitOf = (detachedEnvoy: DetachedEnvoy) =>
    new Promise((resolve) => detachedEnvoy.once('exit', (...end) => resolve(end)));
  const slowProcess = start('sleep', '60');
  await new Promise<void>((resolve) => slowProcess.once('spawn', resolve));
  // Before `exec`, the process is a copy of its shell, which ignores SIGTERM.
  await eventually(
    'it is no shell any more',
    () => readFileSync(`/proc/${slowProcess.pid}/comm`, 'utf8') === 'sleep\n',
  );
  const adoptedProcess = DetachedEnvoy.adopt(slowProcess.folder)!;
  expect(adoptedProcess.pid).toBe(slowProcess.pid);
  const exits = [exitOf(slowProcess), exitOf(adoptedProcess)];
  expect(adoptedProcess.kill('SIGTERM')).toBe(true);
  expect(await Promise.all(exits)).toEqual([
    [null, 'SIGTERM'],
    [null, 'SIGTERM'],
  ]);
  expect(adoptedProcess.kill('SIGTERM')).toBe(false);

  const quickProcess = start('sh', '-c', 'exit 3');
  expect(await exitOf(quickProcess)).toEqual([3, null]);
  expect(await exitOf(DetachedEnvoy.adopt(quickProcess.folder)!)).toEqual([3, null]);
});

test('reports exit code 127 for a missing command', async () => {
  const channels = openDetachedChannels(temporaryScratch(), false)!;
  const heldEnvoy = DetachedEnvoy.start(join(runDirectory(), 'envoy-x'), ['/nowhere/envoy'], channels);
  channels.release();
  expect(await new Promise((resolve) => heldEnvoy.once('exit', (...end) => resolve(end)))).toEqual([127, null]);
});

test('withdraws the start of an Envoy only if the shell of that Envoy has not begun', async () => {
  const runDir = runDirectory();
  const folder = join(runDir, 'envoy-y');
  mkdirSync(folder);
  expect(withdrawStart(folder)).toBe(true);
  expect(existsSync(folder)).toBe(false);
  const { held } = await agentWithProcess();
  expect(withdrawStart(held.folder)).toBe(false);
  expect(existsSync(held.folder)).toBe(true);
});

describe('records of other containers in the same run directory', () => {
  /** @param boot another boot ID (default: of this host) */
  function neighbourRecord({ boot, isOfOwnNamespace = false }: { boot?: string; isOfOwnNamespace?: boolean } = {}) {
    const runDir = runDirectory();
    const ownDirectory = new AgentRecord(runDir).directory;
    const [, namespace = '', start = ''] = /live-restore-(\d+)-(\d+)$/.exec(ownDirectory) ?? [];
    const directory = join(
      runDir,
      `live-restore-${isOfOwnNamespace ? namespace : Number(namespace) + 1}-${Number(start) + 1}`,
    );
    mkdirSync(join(directory, 'envoy-7-0-1-1-0'), { recursive: true });
    const aliveMark = markAlive(directory)!;
    if (boot !== undefined) writeFileSync(join(directory, 'boot'), boot);
    return { runDir, ownDirectory, directory, living: aliveMark };
  }
  const soonMs = 20;
  const checkTwice = async (runDir: string, ownDirectory: string): Promise<OtherRecords> => {
    const neighbours = new OtherRecords(runDir, ownDirectory, soonMs);
    await sleep(5 * soonMs);
    return neighbours;
  };

  test('are kept if their owner is alive', async () => {
    const { runDir, ownDirectory, directory, living } = neighbourRecord();
    expect(ownerStateOf(directory)).toBe('alive');
    expect((await checkTwice(runDir, ownDirectory)).unknownOwners).toEqual([]);
    expect(existsSync(directory)).toBe(true);
    closeSync(living);
  });

  test('are removed at the second check if their owner has exited', async () => {
    const { runDir, ownDirectory, directory, living } = neighbourRecord();
    closeSync(living);
    const neighbours = new OtherRecords(runDir, ownDirectory, soonMs);
    expect([existsSync(directory), ownerStateOf(directory), neighbours.unknownOwners]).toEqual([true, 'exited', []]);
    await eventually('it is removed', () => !existsSync(directory));
    expect(existsSync(ownDirectory)).toBe(true);
  });

  test('are kept if their next agent starts between both checks', async () => {
    const { runDir, ownDirectory, directory, living } = neighbourRecord();
    closeSync(living);
    const checking = checkTwice(runDir, ownDirectory);
    const secondMark = markAlive(directory)!;
    await checking;
    expect(existsSync(directory)).toBe(true);
    closeSync(secondMark);
  });

  test.each([
    ['of another host or boot', (directory: string) => writeFileSync(join(directory, 'boot'), 'x')],
    ['without a boot ID', (directory: string) => rmSync(join(directory, 'boot'))],
    ['without its pipe', (directory: string) => rmSync(join(directory, 'living'))],
  ])('are kept and reported if their owner is unknown: %s', async (_, change) => {
    const { runDir, ownDirectory, directory, living } = neighbourRecord();
    closeSync(living);
    change(directory);
    expect((await checkTwice(runDir, ownDirectory)).unknownOwners).toEqual([directory]);
    expect(existsSync(directory)).toBe(true);
  });

  test('are removed immediately if they are of an earlier PID namespace with the same number on the same host', async () => {
    const earlierNeighbour = neighbourRecord({ isOfOwnNamespace: true });
    new OtherRecords(earlierNeighbour.runDir, earlierNeighbour.ownDirectory).stop();
    expect(existsSync(earlierNeighbour.directory)).toBe(false);
    const other = neighbourRecord({ isOfOwnNamespace: true, boot: 'another' });
    expect((await checkTwice(other.runDir, other.ownDirectory)).unknownOwners).toEqual([other.directory]);
    expect(existsSync(other.directory)).toBe(true);
    for (const { living } of [earlierNeighbour, other]) closeSync(living);
  });

  test('have a living owner while the shell of an Envoy runs without an agent', async () => {
    const directory = runDirectory();
    const aliveMark = markAlive(directory)!;
    const channels = openDetachedChannels(temporaryScratch(), false)!;
    const heldEnvoy = DetachedEnvoy.start(join(directory, 'envoy-1'), ['sleep', '60'], channels, aliveMark);
    channels.release();
    closeSync(aliveMark);
    await once(heldEnvoy, 'spawn');
    expect(ownerStateOf(directory)).toBe('alive');
    heldEnvoy.kill('SIGKILL');
    await once(heldEnvoy, 'exit');
    expect(ownerStateOf(directory)).toBe('exited');
  });
});

test('rejects or validates a randomly damaged record without throwing, and accepts only folders of its own directory', () => {
  const runDir = runDirectory();
  const record = new AgentRecord(runDir);
  record.startRecording([7, 8], sources);
  record.recordStart({ ...live, configFile: 'envoy.json' });
  record.recordState(stateWith(live, { ...live, name: 'epoch-1', epoch: 1, phase: 'starting' }));
  const text = readFileSync(join(runDir, readdirSync(runDir)[0]!, 'record.json'), 'utf8');
  expect(parseRecord(text)).toBeDefined();
  const draw = randomOf(7);
  const pick = (limit: number): number => Math.floor(draw() * limit);
  const hostile = ['"', '{', ']', '-', '0', '9'.repeat(20), '../', '\\u0000', 'null', '__proto__', '\uFFFD', 'e999'];
  let acceptedCount = 0;
  for (let round = 0; round < 20_000; round++) {
    let changedText = text;
    for (let change = pick(3); change >= 0; change--) {
      const from = pick(changedText.length);
      const to = Math.min(changedText.length, from + pick(round % 5 === 0 ? 200 : 3));
      const replacement = [hostile[pick(hostile.length)]!, '', changedText.slice(from, to).repeat(2), String(pick(10))][
        pick(4)
      ];
      changedText = changedText.slice(0, from) + replacement + changedText.slice(to);
    }
    const read = parseRecord(changedText);
    if (read === undefined) continue;
    acceptedCount++;
    for (const { folder, baseId } of read.processes) {
      expect(folder).toMatch(/^envoy-[\d-]+$/);
      expect(Number.isSafeInteger(baseId)).toBe(true);
    }
    for (const { baseId, name } of read.knowledge.epochs) {
      expect(read.baseIds).toContain(baseId);
      expect(name).toMatch(/^epoch-\d+b?$/);
    }
  }
  // Accepted records differ only in digits and texts.
  expect(acceptedCount).toBeGreaterThan(100);
});

test('rejects incomplete records', () => {
  expect(parseRecord('{"format":3}')).toBeUndefined();
  expect(parseRecord('null')).toBeUndefined();
});
