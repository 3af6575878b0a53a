/** From a file change to a restart: the cert-watcher. */
import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { becomesLive, checkEveryWorld, drainingWorld, endProcess, epochsStarted } from './scenes.ts';

checkEveryWorld();

test('invalid or missing files do not delay the first start', async () => {
  const brokenWorld = new AgentWorld();
  brokenWorld.fileProblems = ['tls.crt: no start line'];
  await brokenWorld.settle();
  expect(epochsStarted(brokenWorld)).toEqual([0]);

  const none = new AgentWorld();
  none.files = [];
  await none.settle();
  expect(none.events('config.changed')).toEqual([{ type: 'config.changed', digest: 'digest-0', files: 0 }]);
});

test('an empty directory is valid if there were no files before', async () => {
  const world = new AgentWorld();
  world.files = [];
  await world.settle();
  await becomesLive(world);
  await world.certificate('digest-1');
  expect(world.events('config.rejected')).toEqual([]);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('several problems are reported in one line', async () => {
  const world = await AgentWorld.startServing();
  world.fileProblems = ['tls.crt: no start line', 'tls.key: no start line'];
  await world.certificate('digest-1');
  expect(world.events('config.rejected')).toMatchObject([{ reason: 'tls.crt: no start line; tls.key: no start line' }]);
});

test('an unreadable directory counts as empty: Envoy starts, and the next change triggers another read', async () => {
  const world = new AgentWorld();
  world.digestError = 'EACCES';
  await world.settle();
  expect(world.events('config.changed')).toEqual([{ type: 'config.changed', digest: '', files: 0 }]);
  expect(epochsStarted(world)).toEqual([0]);
  await becomesLive(world);
  world.digestError = undefined;
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0, 1]);
  // No diagram contains a failed read, because the real effect reads what it can (src/agent/files/certificate-files.ts).
  AgentWorld.instances.splice(0);
});

test('a failed read while Envoy runs causes no restart, is reported, and is retried', async () => {
  const world = await AgentWorld.startServing();
  world.digestError = 'EIO';
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('config.rejected')).toMatchObject([{ reason: expect.stringContaining('EIO') }]);
  world.digestError = undefined;
  await world.passTime(30_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
  // No diagram contains a failed read, because the real effect does not fail.
  AgentWorld.instances.splice(0);
});

describe('an unresponsive file system', () => {
  /** An agent that starts while reads hang. */
  const startedHanging = async (): Promise<AgentWorld> => {
    const world = new AgentWorld();
    world.readingHangs = true;
    await world.passTime(9_999);
    return world;
  };

  test('delays the first start by 10 s, and then Envoy starts as with unreadable files', async () => {
    const world = await startedHanging();
    expect(epochsStarted(world)).toEqual([]);
    await world.passTime(1);
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.events('config.changed')).toEqual([{ type: 'config.changed', digest: '', files: 0 }]);
    expect(world.events('config.rejected')).toMatchObject([{ reason: expect.stringContaining('does not respond') }]);
  });

  test('is read again with delays that double up to 1 min, and its content is used when it responds', async () => {
    const world = await startedHanging();
    await world.passTime(1);
    await becomesLive(world);
    const readings = (): number => world.judgeFlags.length;
    expect(readings()).toBe(1);
    await world.passTime(500);
    expect(readings()).toBe(2);
    await world.passTime(100_000 + 1_000);
    expect(readings()).toBe(3);
    expect(world.events('config.rejected')).toHaveLength(2);
    for (const pause of [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      const readingsBefore = readings();
      await world.passTime(100_000 + pause - 1);
      expect(readings()).toBe(readingsBefore);
      await world.passTime(1);
      expect(readings()).toBe(readingsBefore + 1);
    }
    expect(epochsStarted(world)).toEqual([0]);
    world.readingHangs = false;
    await world.passTime(160_000);
    expect(epochsStarted(world)).toEqual([0, 1]);
    expect(world.events('config.changed').at(-1)).toMatchObject({ digest: 'digest-0', files: 1 });
  });

  test('has its late response ignored, because the files can have changed', async () => {
    const world = await startedHanging();
    await world.passTime(1);
    await becomesLive(world);
    await world.completeHungReadings();
    expect(world.events('config.changed')).toHaveLength(1);
    world.digest = 'digest-1';
    world.readingHangs = false;
    await world.passTime(500);
    expect(world.events('config.changed').slice(1)).toMatchObject([{ digest: 'digest-1' }]);
  });

  test('is not read earlier because of watch events, and its delays are short again after a response', async () => {
    const world = await AgentWorld.startServing();
    world.readingHangs = true;
    await world.certificate('digest-1');
    await world.passTime(100_000);
    world.changeFiles('digest-2');
    await world.passTime(499);
    expect(world.judgeFlags).toHaveLength(2);
    world.readingHangs = false;
    await world.passTime(1);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await becomesLive(world);
    world.readingHangs = true;
    await world.certificate('digest-3');
    await world.passTime(100_500);
    expect(world.judgeFlags).toHaveLength(5);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('causes no restart if it returns files that Envoy rejects after a start without certificates', async () => {
    const world = await startedHanging();
    await world.passTime(1);
    await becomesLive(world);
    world.readingHangs = false;
    world.fileProblems = ['tls.crt: no start line'];
    await world.passTime(1_000);
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.events('config.rejected').at(-1)).toMatchObject({ reason: 'tls.crt: no start line' });
  });
});

test('certificates that Envoy could not check cause no restart, and are checked again without a change', async () => {
  const world = await AgentWorld.startServing();
  world.notValidated = 'no verdict in 30000 ms';
  await world.certificate('digest-1');
  await world.passTime(60_000);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('config.rejected')).toHaveLength(3);
  expect(world.events('config.rejected')[0]).toMatchObject({
    reason: 'Envoy could not validate the certificates: no verdict in 30000 ms',
  });
  world.notValidated = undefined;
  await world.passTime(30_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test("a change triggers another read before Envoy's next check", async () => {
  const world = await AgentWorld.startServing();
  world.notValidated = 'no verdict';
  await world.certificate('digest-1');
  world.notValidated = undefined;
  await world.certificate('digest-2');
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('the first start is not delayed by an Envoy check of the certificates', async () => {
  const world = new AgentWorld();
  world.notValidated = 'no verdict';
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.judgeFlags).toEqual([false]);
});

test('files that change continuously are reported occasionally', async () => {
  const world = await AgentWorld.startServing();
  let n = 0;
  world.onReading = () => world.changeFiles(`digest-${++n}`);
  world.changeFiles('digest-0a');
  await world.passTime(75_000);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('config.rejected')).toMatchObject([
    { reason: expect.stringContaining('when they stop changing') },
  ]);
  world.onReading = () => {};
  await world.passTime(20_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('a requested restart waits until the certificates are known to be valid, because the next Envoy could not serve', async () => {
  const world = await AgentWorld.startServing();
  world.checksCertificates = true;
  const validDigest = world.digest;
  world.fileProblems = ['tls.crt: no start line'];
  await world.certificate('digest-bad');
  world.signal('SIGHUP');
  await world.passTime(60_000);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('epoch.failed').at(-1)).toMatchObject({
    during: 'reading the certificates',
    reason: 'the certificate files changed after they were checked',
  });
  expect((await world.requestReadiness()).ready).toBe(true);
  world.fileProblems = [];
  await world.certificate(validDigest);
  await world.passTime(60_000);
  expect(epochsStarted(world).slice(0, 2)).toEqual([0, 1]);
});

test('Envoy is started with any certificates if no Envoy serves', async () => {
  const world = await AgentWorld.startServing();
  world.checksCertificates = true;
  world.digest = 'digest-bad';
  await endProcess(world, world.process('epoch-0'));
  await world.passTime(1_000);
  expect(epochsStarted(world)).toEqual([0, 0]);
});

test('changes within 10 s of the first one are read together (§3.2)', async () => {
  const world = await AgentWorld.startServing();
  world.changeFiles('digest-1');
  await world.passTime(9_000);
  world.changeFiles('digest-2');
  await world.passTime(999);
  expect(epochsStarted(world)).toEqual([0]);
  await world.passTime(1);
  expect(epochsStarted(world)).toEqual([0, 1]);
  await becomesLive(world);
  await world.passTime(20_000);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('Envoy is started although files change during the first read, and they are read again', async () => {
  const world = new AgentWorld();
  changeDuringNextReading(world, 'digest-1');
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  await world.passTime(10_000);
  expect(world.events('config.changed').map(({ digest }) => digest)).toEqual(['digest-0', 'digest-1']);
  // Because the first read found files, an empty directory is rejected.
  await becomesLive(world);
  world.files = [];
  await world.certificate('digest-2');
  expect(world.events('config.rejected')).toHaveLength(1);
});

test('files that change during a later read are used after the next read', async () => {
  const world = await AgentWorld.startServing();
  changeDuringNextReading(world, 'digest-2');
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  await world.passTime(10_000);
  expect(world.events('config.changed').map(({ digest }) => digest)).toEqual(['digest-0', 'digest-2']);
});

test('rejected files that revert to the previous content cause no restart', async () => {
  const world = await drainingWorld();
  world.fileProblems = ['tls.key is not the key of tls.crt'];
  await world.certificate('digest-2');
  world.fileProblems = [];
  await world.certificate('digest-1');
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  expect(epochsStarted(world)).toEqual([0, 1]);
});

function changeDuringNextReading(world: AgentWorld, digest: string): void {
  world.onReading = () => {
    world.onReading = () => {};
    world.changeFiles(digest);
  };
}

test('Envoy is started without missing files after their deadline (§3.5)', async () => {
  const world = new AgentWorld();
  world.filesMissing = true;
  await world.passTime(119_999);
  expect(epochsStarted(world)).toEqual([]);
  await world.passTime(1);
  expect(epochsStarted(world)).toEqual([0]);
  await becomesLive(world);
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('missing files are reported after 1, 3, 7, … s, and when Envoy is started without them', async () => {
  const world = new AgentWorld();
  world.filesMissing = true;
  await world.passTime(7_000);
  world.filesAre(['/certs/tls.crt', '/certs/tls.key']);
  await world.passTime(113_000);
  const reports = world.events('files.missing');
  expect(reports.map(({ waitedMs }) => waitedMs)).toEqual([1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 120_000]);
  expect(reports.map(({ files }) => files.length)).toEqual([1, 1, 1, 2, 2, 2, 2]);
  expect(reports.map(({ awaited }) => awaited)).toEqual([true, true, true, true, true, true, false]);
  await world.passTime(600_000);
  expect(world.events('files.missing')).toHaveLength(7);
  expect(epochsStarted(world)).toEqual([0]);
});

test('files that appear start Envoy immediately, and are not reported again', async () => {
  const world = new AgentWorld();
  world.filesMissing = true;
  await world.passTime(1_000);
  world.filesAre([]);
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  await world.passTime(120_000);
  expect(world.events('files.missing')).toHaveLength(1);
});

test('a file that can never be read delays Envoy only together with a file that can still appear, and is reported', async () => {
  const world = new AgentWorld();
  world.filesMissing = true;
  await world.settle();
  const unreachableFile = '/certs/tls.key: ENOTDIR: not a directory';
  world.filesAre(['/certs/tls.crt'], [unreachableFile]);
  await world.settle();
  expect(epochsStarted(world)).toEqual([]);
  world.filesAre([], [unreachableFile]);
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('files.missing')).toMatchObject([{ files: [unreachableFile], awaited: false }]);
});
