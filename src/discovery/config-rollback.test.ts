/** After a rollback of the configuration directory, proxies receive a complete version and never a mixture. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../test/harness/control-plane.ts';
import { ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.ts';

const files = Number(process.env.ROLLBACK_FILES ?? 500);

const maxReadings = 8;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-rollback-'));
});

afterEach(async () => {
  await stopControlPlanes();
  rmSync(root, { recursive: true });
});

/** Writes one version: each file contains a service named after the version. */
function writeVersion(directory: string, version: string, from = 0, to = files): void {
  for (let i = from; i < to; i++) {
    mkdirSync(join(directory, `${i % 30}`), { recursive: true });
    const spec = `{hosts: [s${i}.${version}.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`;
    writeFileSync(
      join(directory, `${i % 30}`, `${i}.yaml`),
      `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s${i}, namespace: shop}\nspec: ${spec}\n`,
    );
  }
}

/** Number of services of each version in each CDS response, until one contains exactly `expected`. */
async function responsesUntil(
  configDir: string,
  expected: string,
  change: () => unknown,
): Promise<{ seen: object[]; readings: number }> {
  // Without this, clusters of the previous version would be kept for some time.
  const env = { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '0s' };
  const plane = new ControlPlane({ configDir }, {}, undefined, env);
  await plane.ready();
  const stream = plane.client('ads.listening').sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
  await stream.next();
  const countReadings = (): number =>
    plane.records.filter((record) => record.kind === 'event' && record.event.type === 'source.read').length;
  const readingsBefore = countReadings();
  const changeResult = change();
  const servedVersions: Record<string, number>[] = [];
  do {
    const names = (await stream.next()).resources.map(({ value }) => fromBinary(ClusterSchema, value).name);
    const services: Record<string, number> = {};
    for (const name of names) {
      const version = /s\d+\.(\w+)\.example$/.exec(name)?.[1];
      if (version !== undefined) services[version] = (services[version] ?? 0) + 1;
    }
    servedVersions.push(services);
  } while (servedVersions.at(-1)![expected] !== files || Object.keys(servedVersions.at(-1)!).length > 1);
  await changeResult;
  expect(await stream.unexpected()).toEqual([]);
  return { seen: servedVersions, readings: countReadings() - readingsBefore };
}

it('git checkout of the configuration directory causes one reload, after all files are written', async () => {
  const git = (...args: string[]): void => {
    const user = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'gc.auto=0'];
    execFileSync('git', [...user, ...args], { cwd: root, stdio: 'pipe' });
  };
  git('init', '--quiet', '--initial-branch', 'old');
  for (const version of ['old', 'new']) {
    if (version === 'new') git('checkout', '--quiet', '-b', 'new');
    writeVersion(join(root, 'mesh'), version);
    git('add', '.');
    git('commit', '--quiet', '-m', version);
  }
  // Runs in a separate process, so that this one can receive file events in the meantime.
  const checkout = () => promisify(execFile)('git', ['checkout', '--quiet', 'old'], { cwd: root });
  const { seen, readings } = await responsesUntil(join(root, 'mesh'), 'old', checkout);
  expect(seen.at(-1)).toEqual({ old: files });
  // On a busy machine, git may pause for longer than the debounce time. Without waiting for the end of a change, there are 23 reads.
  expect(readings).toBeLessThanOrEqual(maxReadings);
  expect(seen.length).toBeLessThanOrEqual(readings);
});

it('switching a symbolic link causes one response, with the new version', async () => {
  for (const version of ['old', 'new']) writeVersion(join(root, version), version);
  symlinkSync('new', join(root, 'mesh'));
  const change = (): void => {
    symlinkSync('old', join(root, 'next'));
    renameSync(join(root, 'next'), join(root, 'mesh'));
  };
  expect(await responsesUntil(join(root, 'mesh'), 'old', change)).toEqual({
    seen: [{ old: files }],
    readings: 1,
  });
});

/** Simulates a slow disk. @returns the longest pause between two files, in milliseconds */
async function writeSlowly(directory: string, version: string): Promise<number> {
  let [maxPauseMs, last] = [0, performance.now()];
  for (let i = 0; i < files; i += 20) {
    writeVersion(directory, version, i, Math.min(i + 20, files));
    await sleep(10);
    maxPauseMs = Math.max(maxPauseMs, performance.now() - last);
    last = performance.now();
  }
  return maxPauseMs;
}

it('a version whose files are written slowly causes one response', async () => {
  writeVersion(join(root, 'mesh'), 'new');
  let pauseMs = 0;
  const { seen, readings } = await responsesUntil(join(root, 'mesh'), 'old', async () => {
    pauseMs = await writeSlowly(join(root, 'mesh'), 'old');
  });
  // On a busy machine the pauses may exceed the debounce time; parts of the version are then applied, as documented.
  const isBurst = pauseMs < 150;
  expect(seen.at(-1)).toEqual({ old: files });
  if (isBurst) expect([seen.length, readings]).toEqual([1, 1]);
});
