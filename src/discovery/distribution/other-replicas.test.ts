import { expect, test } from 'vitest';
import { presenceLeaseOf } from '../election/replica-presence.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { OtherReplicas } from './other-replicas.ts';
import { reportAnnotation } from './replica-report.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';
const key = 'VirtualService/shop/cart';

function given() {
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
    await replicas.look();
    const counts = replicas.countsOf(key, 2, 0);
    return counts && [...counts.unreported, ...counts.uncounted].sort();
  };
  return { replicas, leases, script, hold, at, warnings };
}

test('a replica counts while its Lease changes, and 60 s after it expired', async () => {
  const { hold, at } = given();
  hold(me, '1');
  hold(other, '1');
  expect(await at(0)).toEqual([other]);
  hold(other, '2');
  expect(await at(14_000)).toEqual([other]);
  expect(await at(29_000)).toEqual([other]);
  expect(await at(88_000)).toEqual([other]);
  expect(await at(94_000)).toEqual([]);
});

test('a replica that released its Lease, or whose Lease was deleted, counts for 60 s', async () => {
  for (const end of ['released', 'deleted']) {
    const { hold, leases, at } = given();
    hold(other, '1');
    await at(0);
    if (end === 'released') hold(other, '2', '');
    else leases.clear();
    expect(await at(5_000)).toEqual([other]);
    expect(await at(64_000)).toEqual([other]);
    expect(await at(70_000)).toEqual([]);
  }
});

test('nothing is known before the first list, and a failed one changes nothing', async () => {
  const { hold, script, at } = given();
  hold(other, '1');
  script.fails = true;
  expect(await at(0)).toBeUndefined();
  script.fails = false;
  expect(await at(5_000)).toEqual([other]);
  script.fails = true;
  expect(await at(10_000)).toEqual([other]);
});

test('Leases are listed at most once in 2 s', async () => {
  const { script, at } = given();
  for (let now = 0; now < 10_000; now += 500) await at(now);
  expect(script.lists).toBe(5);
});

const third = 'istiod-c_33333333';
const report = (counts: object, revision = ''): string => JSON.stringify({ revision, counts });

test('the counts of the generation that other replicas report are added', async () => {
  const { replicas, hold, at, warnings } = given();
  hold(me, '1', me, report({ [key]: [2, 9, 9] }));
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  hold(third, '1', third, report({ [key]: [2, 3, 3] }));
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toEqual({ upToDate: 4, concerned: 5, unreported: [], uncounted: [] });
  expect(replicas.countsOf(key, 1, 0)?.unreported).toEqual([other, third]);
  expect(replicas.countsOf('Gateway/shop/a', 1, 0)?.unreported).toEqual([other, third]);
  expect([...replicas.incomplete()]).toEqual([[key, 2]]);
  expect(warnings).toEqual([]);
});

test('counts of earlier reports stay, for a report has only as many as fit', async () => {
  const { replicas, hold, at } = given();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  await at(0);
  hold(other, '2', other, report({ 'Gateway/shop/a': [1, 1, 1] }));
  await at(2_000);
  expect(replicas.countsOf(key, 2, 0)).toMatchObject({ upToDate: 1, concerned: 2 });
  expect(replicas.countsOf('Gateway/shop/a', 1, 0)).toMatchObject({ upToDate: 1, concerned: 1 });
});

test('nothing is known of an object that changed after the Leases were listed', async () => {
  const { replicas, hold, at } = given();
  hold(other, '1', other, report({ [key]: [2, 1, 1] }));
  await at(1_000);
  expect(replicas.countsOf(key, 2, 1_000)).toBeDefined();
  expect(replicas.countsOf(key, 2, 1_001)).toBeUndefined();
});

test('the counts of a replica that ended do not count', async () => {
  const { replicas, hold, at } = given();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }));
  await at(0);
  hold(other, '2', '', report({ [key]: [2, 1, 2] }));
  await at(5_000);
  expect(replicas.countsOf(key, 2, 0)).toEqual({ upToDate: 0, concerned: 0, unreported: [], uncounted: [other] });
  expect([...replicas.incomplete()]).toEqual([]);
});

test('a replica of another revision is not counted', async () => {
  const { replicas, hold, at } = given();
  hold(other, '1', other, report({ [key]: [2, 1, 2] }, 'canary'));
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toEqual({ upToDate: 0, concerned: 0, unreported: [], uncounted: [other] });
  expect([...replicas.incomplete()]).toEqual([]);
});

test.each([
  ['not JSON', '{"revision'],
  ['more than 16384 bytes', ' '.repeat(16_385)],
  ['not three counts of an object', report({ [key]: [2, 5, 1] })],
])('an annotation that is %s is ignored and logged once, and the replica has not reported', async (reason, text) => {
  const { replicas, hold, at, warnings } = given();
  hold(other, '1', other, text);
  hold(third, '1', third, report({ [key]: [2, 3, 3] }));
  for (let now = 0; now <= 8_000; now += 2_000) await at(now);
  expect(replicas.countsOf(key, 2, 0)).toEqual({ upToDate: 3, concerned: 3, unreported: [other], uncounted: [] });
  expect(warnings).toEqual([`status.reportInvalid ${presenceLeaseOf(other)} ${reason}`]);
});

test('a holder that is no replica is named by its Lease, so that its text reaches no status', async () => {
  const { hold, at } = given();
  hold(other, '1', 'evil\n"text"_33333333', report({}));
  expect(await at(0)).toEqual([presenceLeaseOf(other)]);
});

test('reports of more than 64 replicas are not read', async () => {
  const { replicas, hold, at, warnings } = given();
  for (let index = 0; index < 70; index++) {
    const identity = `istiod_${10_000_000 + index}`;
    hold(identity, '1', identity, report({ [key]: [2, 1, 1] }));
  }
  await at(0);
  expect(replicas.countsOf(key, 2, 0)).toMatchObject({ upToDate: 64, concerned: 64 });
  expect(replicas.countsOf(key, 2, 0)?.unreported).toHaveLength(6);
  expect(warnings).toHaveLength(6);
});
