import { expect, test } from 'vitest';
import { presenceLeaseOf } from '../election/replica-presence.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { OtherReplicas } from './other-replicas.ts';
import { reportAnnotation } from './replica-report.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';
const key = 'VirtualService/shop/cart';

function createReplicas() {
  const clock = { now: 0 };
  const leases = new Map<string, KubernetesObject>();
  const script = { fails: false, lists: 0 };
  const warnings: string[] = [];
  const replicas = new OtherReplicas({
    server: {
      list: async () => {
        script.lists++;
        if (script.fails) throw new Error('no response');
        return { items: [...leases.values()], resourceVersion: '1' };
      },
    },
    ...{ namespace: 'istio-system', identity: me, revision: '', leaseMs: 15_000 },
    ...{ now: () => clock.now, isWriter: () => true },
    log: {
      warn: (id, fields: { lease?: unknown; reason?: unknown } = {}) =>
        void warnings.push(`${id} ${fields.lease} ${fields.reason}`),
    },
  });
  const hold = (identity: string, resourceVersion: string, holderIdentity = identity, report?: string): void => {
    const name = presenceLeaseOf(identity)!;
    const annotations = report === undefined ? {} : { annotations: { [reportAnnotation]: report } };
    leases.set(name, { metadata: { name, resourceVersion, ...annotations }, spec: { holderIdentity } });
  };
  const at = async (now: number): Promise<readonly string[] | undefined> => {
    clock.now = now;
    await replicas.refresh();
    const counts = replicas.countsOf(key, 2, 0);
    return counts && [...counts.unreportedReplicas, ...counts.uncountedReplicas].sort();
  };
  return { replicas, leases, script, hold, at, warnings };
}

test('OtherReplicas counts a replica while its Lease changes, and for 60 s after the Lease expires', async () => {
  const { hold, at } = createReplicas();
  hold(me, '1');
  hold(other, '1');
  expect(await at(0)).toEqual([other]);
  hold(other, '2');
  expect(await at(14_000)).toEqual([other]);
  expect(await at(29_000)).toEqual([other]);
  expect(await at(88_000)).toEqual([other]);
  expect(await at(94_000)).toEqual([]);
});

test('OtherReplicas counts a replica for 60 s after its Lease is released or deleted', async () => {
  for (const end of ['released', 'deleted']) {
    const { hold, leases, at } = createReplicas();
    hold(other, '1');
    await at(0);
    if (end === 'released') hold(other, '2', '');
    else leases.clear();
    expect(await at(5_000)).toEqual([other]);
    expect(await at(64_000)).toEqual([other]);
    expect(await at(70_000)).toEqual([]);
  }
});

test('OtherReplicas has no counts before the first list, and keeps its counts after a failed list', async () => {
  const { hold, script, at } = createReplicas();
  hold(other, '1');
  script.fails = true;
  expect(await at(0)).toBeUndefined();
  script.fails = false;
  expect(await at(5_000)).toEqual([other]);
  script.fails = true;
  expect(await at(10_000)).toEqual([other]);
});

test('OtherReplicas lists Leases at most once every 2 s', async () => {
  const { script, at } = createReplicas();
  for (let now = 0; now < 10_000; now += 500) await at(now);
  expect(script.lists).toBe(5);
});

const third = 'istiod-c_33333333';
const report = (counts: object, revision = ''): string => JSON.stringify({ revision, counts });

test('OtherReplicas adds the counts that other replicas report for a generation', async () => {
  const { replicas, hold, at, warnings } = createReplicas();
  hold(me, '1', me, report({ [key]: [2, 9, 9] }));
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  hold(third, '1', third, report({ [key]: [2, 3, 3] }));
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toEqual({
    upToDate: 4,
    concerned: 5,
    unreportedReplicas: [],
    uncountedReplicas: [],
  });
  expect(replicas.countsOf(key, 1, 0)?.unreportedReplicas).toEqual([other, third]);
  expect(replicas.countsOf('Gateway/shop/a', 1, 0)?.unreportedReplicas).toEqual([other, third]);
  expect([...replicas.incompleteObjects()]).toEqual([[key, 2]]);
  expect(warnings).toEqual([]);
});

test('OtherReplicas keeps the counts of earlier reports, because a report has limited size', async () => {
  const { replicas, hold, at } = createReplicas();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  await at(0);
  hold(other, '2', other, report({ 'Gateway/shop/a': [1, 1, 1] }));
  await at(2_000);
  expect(replicas.countsOf(key, 2, 0)).toMatchObject({ upToDate: 1, concerned: 2 });
  expect(replicas.countsOf('Gateway/shop/a', 1, 0)).toMatchObject({ upToDate: 1, concerned: 1 });
});

test('OtherReplicas has no counts for an object that changed after the Leases were listed', async () => {
  const { replicas, hold, at } = createReplicas();
  hold(other, '1', other, report({ [key]: [2, 1, 1] }));
  await at(1_000);
  expect(replicas.countsOf(key, 2, 1_000)).toBeDefined();
  expect(replicas.countsOf(key, 2, 1_001)).toBeUndefined();
});

test('OtherReplicas ignores the counts of a replica that has exited', async () => {
  const { replicas, hold, at } = createReplicas();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  await at(0);
  hold(other, '2', '', report({ [key]: [2, 1, 2] }));
  await at(5_000);
  expect(replicas.countsOf(key, 2, 0)).toEqual({
    upToDate: 0,
    concerned: 0,
    unreportedReplicas: [],
    uncountedReplicas: [other],
  });
  expect([...replicas.incompleteObjects()]).toEqual([]);
});

test('OtherReplicas does not count a replica of another revision', async () => {
  const { replicas, hold, at } = createReplicas();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }, 'canary'));
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toEqual({
    upToDate: 0,
    concerned: 0,
    unreportedReplicas: [],
    uncountedReplicas: [other],
  });
  expect([...replicas.incompleteObjects()]).toEqual([]);
});

test.each([
  ['not JSON', '{"revision'],
  ['more than 16384 bytes', ' '.repeat(16_385)],
  ['not three counts of an object', report({ [key]: [2, 5, 1] })],
])(
  'OtherReplicas ignores an annotation that is %s, logs it once, and treats the replica as unreported',
  async (reason, text) => {
    const { replicas, hold, at, warnings } = createReplicas();
    hold(other, '1', other, text);
    hold(third, '1', third, report({ [key]: [2, 3, 3] }));
    for (let now = 0; now <= 8_000; now += 2_000) await at(now);
    expect(replicas.countsOf(key, 2, 0)).toEqual({
      upToDate: 3,
      concerned: 3,
      unreportedReplicas: [other],
      uncountedReplicas: [],
    });
    expect(warnings).toEqual([`status.reportInvalid ${presenceLeaseOf(other)} ${reason}`]);
  },
);

test("OtherReplicas names an invalid holder by its Lease, so that the holder's text cannot reach a status", async () => {
  const { hold, at } = createReplicas();
  hold(other, '1', 'evil\n"text"_33333333', report({}));
  expect(await at(0)).toEqual([presenceLeaseOf(other)]);
});

test('OtherReplicas reads the reports of at most 64 replicas', async () => {
  const { replicas, hold, at, warnings } = createReplicas();
  for (let index = 0; index < 70; index++) {
    const identity = `istiod_${10_000_000 + index}`;
    hold(identity, '1', identity, report({ [key]: [2, 1, 1] }));
  }
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toMatchObject({ upToDate: 64, concerned: 64 });
  expect(replicas.countsOf(key, 2, 0)?.unreportedReplicas).toHaveLength(6);
  expect(warnings).toHaveLength(6);
});
