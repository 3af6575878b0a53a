import { expect, test } from 'vitest';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { OtherReplicas } from './other-replicas.ts';
import { presenceLeaseOf } from './replica-presence.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';

function given() {
  const clock = { now: 0 };
  const leases = new Map<string, KubernetesObject>();
  const script = { fails: false, lists: 0 };
  const replicas = new OtherReplicas({
    server: {
      list: async () => {
        script.lists++;
        if (script.fails) throw new Error('no response');
        return { items: [...leases.values()], resourceVersion: '1' };
      },
    },
    ...{ namespace: 'istio-system', identity: me, leaseMs: 15_000, now: () => clock.now },
  });
  const hold = (identity: string, resourceVersion: string, holderIdentity = identity): void => {
    const name = presenceLeaseOf(identity)!;
    leases.set(name, { metadata: { name, resourceVersion }, spec: { holderIdentity } });
  };
  const at = async (now: number): Promise<readonly string[] | undefined> => {
    clock.now = now;
    await replicas.look();
    return replicas.mayServe;
  };
  return { replicas, leases, script, hold, at };
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

test('Leases are listed at most once in 5 s', async () => {
  const { script, at } = given();
  for (let now = 0; now < 10_000; now += 1_000) await at(now);
  expect(script.lists).toBe(2);
});
