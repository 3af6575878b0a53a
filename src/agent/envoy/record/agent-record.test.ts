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
import { HeldEnvoy, withdrawStart } from '../held-envoy.ts';
import { openHeldChannels } from '../output/output-channels.ts';
import { AgentRecord, parseRecord } from './agent-record.ts';
import { Neighbours } from './record-neighbours.ts';
import { openLiving, ownerOf } from './record-owner.ts';

const live: EpochRecord = {
  ...{ name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 100, digest: 'd', binary: 'first', orders: 0 },
  ...{ phase: 'live', doomed: false },
};

const knows = (...epochs: EpochRecord[]): PersistedState => ({
  ...{ desired: { digest: 'd', orders: 0, binary: 'first' }, epochs, recovery: 'none' },
  ...{ provenDigest: 'd', provenBinary: 'first' },
});

const sources = { binaries: { describe: () => [] } };

function runDirectory(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

/** `sleep`, which nobody else is the parent of. */
async function startsProcess(record: AgentRecord, epoch: number): Promise<HeldEnvoy> {
  const channels = openHeldChannels(temporaryScratch(), false)!;
  const folder = record.processStarts({ ...live, epoch, configFile: 'envoy.json' });
  const held = HeldEnvoy.start(folder, ['sleep', '60'], channels);
  channels.release();
  onTestFinished(async () => {
    // Its shell writes how it ended: only then is its folder to be removed.
    if (held.kill('SIGKILL')) await once(held, 'exit');
  });
  await new Promise<void>((resolve) => held.once('spawn', resolve));
  return held;
}

/** An agent that has a process for epoch 0. */
async function agentWithProcess(): Promise<{
  runDir: string;
  directory: string;
  held: HeldEnvoy;
  record: AgentRecord;
}> {
  const runDir = runDirectory();
  const record = new AgentRecord(runDir);
  record.keep([7, 8], sources);
  record.supervisorKnows(knows({ ...live, phase: 'starting' }));
  const held = await startsProcess(record, 0);
  record.supervisorKnows(knows(live));
  return { runDir, directory: join(runDir, readdirSync(runDir)[0]!), held, record };
}

const isAlive = (pid: number | undefined): boolean => pid !== undefined && startTimeOf(pid) !== undefined;

describe('what a killed agent leaves', () => {
  test('is found whole by the next one, with what runs and for how long', async () => {
    const { runDir, held } = await agentWithProcess();
    const found = await new AgentRecord(runDir).read();
    expect(found).toMatchObject({ baseIds: [7, 8] });
    const moments = { startedAtMs: expect.any(Number), elapsedMs: expect.any(Number), unseenMs: 0 };
    expect(found?.adoption.epochs).toEqual([{ ...live, configFile: 'envoy.json', ...moments }]);
    expect(found?.pidOf(live)).toBe(held.pid);
  });

  test('is found whole where an earlier process of the same epoch has left its folder', async () => {
    const { runDir, record, held } = await agentWithProcess();
    held.kill('SIGKILL');
    await once(held, 'exit');
    const next = await startsProcess(record, 0);
    record.supervisorKnows(knows(live));
    const found = await new AgentRecord(runDir).read();
    expect(found?.pidOf(live)).toBe(next.pid);
    expect(isAlive(next.pid)).toBe(true);
  });

  test('is nothing where an agent has ended in order', async () => {
    const { runDir, record, held } = await agentWithProcess();
    held.kill('SIGKILL');
    await new Promise((resolve) => held.once('exit', resolve));
    record.close();
    expect(readdirSync(runDir)).toEqual([]);
    expect(new AgentRecord(runDir).isThere).toBe(false);
  });

  test('lacks an epoch whose process was never started', async () => {
    const { runDir, record } = await agentWithProcess();
    record.supervisorKnows(knows(live, { ...live, name: 'epoch-1', epoch: 1, phase: 'starting' }));
    const found = await new AgentRecord(runDir).read();
    expect(found?.adoption.epochs.map(({ name }) => name)).toEqual(['epoch-0']);
  });

  test('lacks a parent whose end was told, and whose folder is gone: what serves is taken over', async () => {
    const { runDir, record, held } = await agentWithProcess();
    const parent: EpochRecord = { ...live, name: 'epoch-1', epoch: 1, phase: 'leaving' };
    record.supervisorKnows(knows(live, parent));
    const found = await new AgentRecord(runDir).read();
    expect(found?.adoption.epochs.map(({ name }) => name)).toEqual(['epoch-0']);
    expect(isAlive(held.pid)).toBe(true);
  });

  test('a child may have been live, unseen, since its start, and its parent been told to leave', async () => {
    const { runDir, record } = await agentWithProcess();
    const startedFrom = hostMs();
    await startsProcess(record, 1);
    const found = async () => (await new AgentRecord(runDir).read())?.adoption.epochs ?? [];
    const child = { ...live, name: 'epoch-1', epoch: 1 };
    record.supervisorKnows(knows(live, { ...child, phase: 'starting' }));
    const [, starting] = await found();
    expect(starting?.startedAtMs).toBeGreaterThanOrEqual(startedFrom);
    await sleep(60);
    record.supervisorKnows(knows({ ...live, phase: 'leaving' }, child));
    const [left] = await found();
    expect(left?.unseenMs).toBeGreaterThanOrEqual(60);
    await sleep(60);
    expect(await found()).toMatchObject([{ unseenMs: left?.unseenMs }, { startedAtMs: starting?.startedAtMs }]);
  });

  test('a parent whose child died has its time anew from the next one that is live in its place', async () => {
    const { runDir, record } = await agentWithProcess();
    const parent = { ...live, phase: 'leaving' } as const;
    const child = { ...live, name: 'epoch-1', epoch: 1 };
    const found = async () => (await new AgentRecord(runDir).read())?.adoption.epochs ?? [];
    await startsProcess(record, 1);
    record.supervisorKnows(knows(parent, child));
    record.supervisorKnows(knows(parent));
    await sleep(120);
    record.supervisorKnows(knows(parent, { ...child, phase: 'starting' }));
    const [leaving] = await found();
    expect(leaving?.elapsedMs).toBeGreaterThanOrEqual(120);
    const seenFrom = hostMs();
    record.supervisorKnows(knows(parent, child));
    const [leavingAnew] = await found();
    expect(leavingAnew?.elapsedMs).toBeLessThanOrEqual(hostMs() - seenFrom);
  });

  test.each([
    ['cut short', (text: string) => text.slice(0, text.length / 2)],
    ['of another format', (text: string) => text.replace('"format":3', '"format":2')],
    ['empty', () => ''],
    ['no object', () => '[]'],
    ['longer than any', (text: string) => `${text}${' '.repeat(70_000)}`],
    ['of an epoch twice', (text: string) => text.replace(/"epochs":\[(.*?)\]/, '"epochs":[$1,$1]')],
    ['of a folder elsewhere', (text: string) => text.replace(/"folder":"/g, '"folder":"../')],
    ['of a base id that it does not have', (text: string) => text.replace('"baseIds":[7,8]', '"baseIds":[8,9]')],
    ['of a phase that there is not', (text: string) => text.replace('"live"', '"asleep"')],
    ['of no process that it has a folder for', (text: string) => text.replace(/"processes":\[.*?\]/, '"processes":[]')],
  ])('is ended, not believed, where the record is %s', async (_, change) => {
    const { runDir, directory, held } = await agentWithProcess();
    const file = join(directory, 'record.json');
    const text = readFileSync(file, 'utf8');
    expect(change(text)).not.toBe(text);
    writeFileSync(file, change(text));
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    await eventually('its process is gone', () => !isAlive(held.pid));
    expect(existsSync(file)).toBe(false);
  });

  test('is ended where another folder lies beside those of the record', async () => {
    const { runDir, directory, held } = await agentWithProcess();
    mkdirSync(join(directory, 'envoy-7-9-1-1-1'));
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    await eventually('its process is gone', () => !isAlive(held.pid));
  });

  test('is ended with its shell in one, where that has not said yet whom it has started: an Envoy without its shell would end its parent', async () => {
    const runDir = runDirectory();
    const record = new AgentRecord(runDir);
    record.keep([7, 8], sources);
    const [ready, told] = [join(runDir, 'ready'), join(runDir, 'told')];
    // As Envoy ties itself to its shell.
    const tied = `trap 'echo >${told}; exit' TERM; echo >${ready}; while :; do sleep 0.01; done`;
    const folder = record.processStarts({ ...live, configFile: 'envoy.json' });
    const channels = openHeldChannels(temporaryScratch(), false)!;
    const held = HeldEnvoy.start(folder, ['setpriv', '--pdeathsig', 'TERM', 'sh', '-c', tied], channels);
    channels.release();
    await once(held, 'spawn');
    await eventually('it is tied', () => existsSync(ready));
    const { pid } = held;
    rmSync(join(folder, 'envoy'));
    expect(record.endAll()).toHaveLength(1);
    await eventually('it is gone', () => !isAlive(pid));
    expect(existsSync(told)).toBe(false);
  });

  test('names a process of another start time: that one is left alone', async () => {
    const { runDir, directory, held } = await agentWithProcess();
    const folder = readdirSync(directory).find((name) => name.startsWith('envoy-'))!;
    writeFileSync(join(directory, folder, 'envoy'), `${process.pid} 1\n`);
    writeFileSync(join(directory, 'record.json'), '');
    expect(await new AgentRecord(runDir).read()).toBeUndefined();
    expect(isAlive(process.pid)).toBe(true);
    await eventually('what its shell did start is gone with it', () => !isAlive(held.pid));
  });
});

test('an adopted process tells its exit code, also where it has ended before', async () => {
  const runDir = runDirectory();
  const start = (...command: string[]): HeldEnvoy => {
    const channels = openHeldChannels(temporaryScratch(), false)!;
    const held = HeldEnvoy.start(join(runDir, `envoy-${command.join('-').replace(/\W/g, '-')}`), command, channels);
    channels.release();
    return held;
  };
  const exitOf = (held: HeldEnvoy) => new Promise((resolve) => held.once('exit', (...end) => resolve(end)));
  const slow = start('sleep', '60');
  await new Promise<void>((resolve) => slow.once('spawn', resolve));
  // Until then it is a copy of its shell, which wakes at a SIGTERM and goes on.
  await eventually('it is no shell any more', () => readFileSync(`/proc/${slow.pid}/comm`, 'utf8') === 'sleep\n');
  const adopted = HeldEnvoy.adopt(slow.folder)!;
  expect(adopted.pid).toBe(slow.pid);
  const ends = [exitOf(slow), exitOf(adopted)];
  expect(adopted.kill('SIGTERM')).toBe(true);
  expect(await Promise.all(ends)).toEqual([
    [null, 'SIGTERM'],
    [null, 'SIGTERM'],
  ]);
  expect(adopted.kill('SIGTERM')).toBe(false);

  const quick = start('sh', '-c', 'exit 3');
  expect(await exitOf(quick)).toEqual([3, null]);
  expect(await exitOf(HeldEnvoy.adopt(quick.folder)!)).toEqual([3, null]);
});

test('a command that is not there ends as the shell says', async () => {
  const channels = openHeldChannels(temporaryScratch(), false)!;
  const held = HeldEnvoy.start(join(runDirectory(), 'envoy-x'), ['/nowhere/envoy'], channels);
  channels.release();
  expect(await new Promise((resolve) => held.once('exit', (...end) => resolve(end)))).toEqual([127, null]);
});

test('a start is withdrawn as long as its shell has not begun, and not after', async () => {
  const runDir = runDirectory();
  const folder = join(runDir, 'envoy-y');
  mkdirSync(folder);
  expect(withdrawStart(folder)).toBe(true);
  expect(existsSync(folder)).toBe(false);
  const { held } = await agentWithProcess();
  expect(withdrawStart(held.folder)).toBe(false);
  expect(existsSync(held.folder)).toBe(true);
});

describe('of records that other containers have left in the same run directory', () => {
  /** @param boot of the start of the kernel; undefined: this one's */
  function neighbour({ boot, isOfOwnNamespace = false }: { boot?: string; isOfOwnNamespace?: boolean } = {}) {
    const runDir = runDirectory();
    const own = new AgentRecord(runDir).directory;
    const [, namespace = '', start = ''] = /live-restore-(\d+)-(\d+)$/.exec(own) ?? [];
    const directory = join(
      runDir,
      `live-restore-${isOfOwnNamespace ? namespace : Number(namespace) + 1}-${Number(start) + 1}`,
    );
    mkdirSync(join(directory, 'envoy-7-0-1-1-0'), { recursive: true });
    const living = openLiving(directory)!;
    if (boot !== undefined) writeFileSync(join(directory, 'boot'), boot);
    return { runDir, own, directory, living };
  }
  const soonMs = 20;
  const look = async (runDir: string, own: string): Promise<Neighbours> => {
    const neighbours = new Neighbours(runDir, own, soonMs);
    await sleep(5 * soonMs);
    return neighbours;
  };

  test('one whose owner lives is not touched', async () => {
    const { runDir, own, directory, living } = neighbour();
    expect(ownerOf(directory)).toBe('lives');
    expect((await look(runDir, own)).unknown).toEqual([]);
    expect(existsSync(directory)).toBe(true);
    closeSync(living);
  });

  test('one whose owner is gone is removed, at the second look', async () => {
    const { runDir, own, directory, living } = neighbour();
    closeSync(living);
    const neighbours = new Neighbours(runDir, own, soonMs);
    expect([existsSync(directory), ownerOf(directory), neighbours.unknown]).toEqual([true, 'gone', []]);
    await eventually('it is removed', () => !existsSync(directory));
    expect(existsSync(own)).toBe(true);
  });

  test('one whose next agent begins between the two looks is not touched', async () => {
    const { runDir, own, directory, living } = neighbour();
    closeSync(living);
    const looking = look(runDir, own);
    const again = openLiving(directory)!;
    await looking;
    expect(existsSync(directory)).toBe(true);
    closeSync(again);
  });

  test.each([
    [
      'of another host, or of another start of this one',
      (directory: string) => writeFileSync(join(directory, 'boot'), 'x'),
    ],
    ['that does not say of which host it is', (directory: string) => rmSync(join(directory, 'boot'))],
    ['without its pipe', (directory: string) => rmSync(join(directory, 'living'))],
  ])('one %s is left, and told of', async (_, change) => {
    const { runDir, own, directory, living } = neighbour();
    closeSync(living);
    change(directory);
    expect((await look(runDir, own)).unknown).toEqual([directory]);
    expect(existsSync(directory)).toBe(true);
  });

  test('one of a namespace that had the number of this one is removed at once, unless it is another host’s', async () => {
    const gone = neighbour({ isOfOwnNamespace: true });
    new Neighbours(gone.runDir, gone.own).stop();
    expect(existsSync(gone.directory)).toBe(false);
    const other = neighbour({ isOfOwnNamespace: true, boot: 'another' });
    expect((await look(other.runDir, other.own)).unknown).toEqual([other.directory]);
    expect(existsSync(other.directory)).toBe(true);
    for (const { living } of [gone, other]) closeSync(living);
  });

  test('the owner lives as long as an Envoy’s shell does, also without an agent', async () => {
    const directory = runDirectory();
    const living = openLiving(directory)!;
    const channels = openHeldChannels(temporaryScratch(), false)!;
    const held = HeldEnvoy.start(join(directory, 'envoy-1'), ['sleep', '60'], channels, living);
    channels.release();
    closeSync(living);
    await once(held, 'spawn');
    expect(ownerOf(directory)).toBe('lives');
    held.kill('SIGKILL');
    await once(held, 'exit');
    expect(ownerOf(directory)).toBe('gone');
  });
});

test('bytes of a record that are changed, lost or doubled at random never throw, and what is read names its own folders only', () => {
  const runDir = runDirectory();
  const record = new AgentRecord(runDir);
  record.keep([7, 8], sources);
  record.processStarts({ ...live, configFile: 'envoy.json' });
  record.supervisorKnows(knows(live, { ...live, name: 'epoch-1', epoch: 1, phase: 'starting' }));
  const text = readFileSync(join(runDir, readdirSync(runDir)[0]!, 'record.json'), 'utf8');
  expect(parseRecord(text)).toBeDefined();
  const draw = randomOf(7);
  const pick = (below: number): number => Math.floor(draw() * below);
  const hostile = ['"', '{', ']', '-', '0', '9'.repeat(20), '../', '\\u0000', 'null', '__proto__', '\uFFFD', 'e999'];
  let believed = 0;
  for (let round = 0; round < 20_000; round++) {
    let changed = text;
    for (let change = pick(3); change >= 0; change--) {
      const from = pick(changed.length);
      const to = Math.min(changed.length, from + pick(round % 5 === 0 ? 200 : 3));
      const between = [hostile[pick(hostile.length)]!, '', changed.slice(from, to).repeat(2), String(pick(10))][
        pick(4)
      ];
      changed = changed.slice(0, from) + between + changed.slice(to);
    }
    const read = parseRecord(changed);
    if (read === undefined) continue;
    believed++;
    for (const { folder, baseId } of read.processes) {
      expect(folder).toMatch(/^envoy-[\d-]+$/);
      expect(Number.isSafeInteger(baseId)).toBe(true);
    }
    for (const { baseId, name } of read.knowledge.epochs) {
      expect(read.baseIds).toContain(baseId);
      expect(name).toMatch(/^epoch-\d+b?$/);
    }
  }
  // Digits and texts that mean something else, but nothing that is not as an agent writes it.
  expect(believed).toBeGreaterThan(100);
});

test('a record is whole or none', () => {
  expect(parseRecord('{"format":3}')).toBeUndefined();
  expect(parseRecord('null')).toBeUndefined();
});
