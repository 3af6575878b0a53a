import { describe, expect, it } from 'vitest';
import { presenceLeaseOf } from '../election/replica-presence.ts';
import type { WriteGate, WriteOrder } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { OrphanedEntries, type ReplicaRecords } from './orphaned-entries.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';
const run = { retry: false, includesAll: false };

function entry(
  name: string,
  controller: string | undefined,
  group: string | undefined = 'vm',
  namespace = 'shop',
): KubernetesObject {
  const annotations = {
    ...(group !== undefined && { 'istio.io/autoRegistrationGroup': group }),
    ...(controller !== undefined && { 'istio.io/workloadController': controller }),
  };
  return { metadata: { name, namespace, resourceVersion: `of ${name}`, annotations } };
}

interface DutyOptions {
  readonly words?: ReplicaRecords;
  /** Number of unrelated Leases. */
  readonly unrelatedLeases?: number;
}

/** An election duty, a clock, Leases by name, and deleted objects. */
function createDuty(entries: KubernetesObject[], { words, unrelatedLeases = 0 }: DutyOptions = {}) {
  const clock = { now: 0 };
  const unrelated = Array.from({ length: unrelatedLeases }, (_, i): [string, string] => [`cilium-${i}`, '1']);
  const leases = new Map<string, string>();
  const deleted: string[] = [];
  const script: { refusal?: ApiError; unlisted?: boolean } = {};
  const duty = new OrphanedEntries({
    server: {
      list: async (_, { limit = 0, continue: from = '0' }) => {
        if (script.unlisted === true) throw new Error('no answer');
        const all = [...unrelated, ...leases];
        const end = Number(from) + limit;
        const page = all.slice(Number(from), end);
        return {
          items: page.map(([name, resourceVersion]) => ({ metadata: { name, resourceVersion } })),
          resourceVersion: '1',
          ...(end < all.length && { continue: `${end}` }),
        };
      },
    },
    entries: () => entries,
    ...(words && { records: words }),
    ...{ namespace: 'istio-system', identity: me, leaseMs: 15_000, graceMs: 10_000, now: () => clock.now },
  });
  const writeGate = {
    write: async ({ name, ...order }: WriteOrder) => {
      if (script.refusal !== undefined) throw script.refusal;
      deleted.push(`${name} ${'version' in order ? order.version : ''}`);
      leases.delete(name);
      const at = entries.findIndex(({ metadata }) => metadata.name === name);
      if (at >= 0) entries.splice(at, 1);
    },
  } as unknown as WriteGate;
  const runAt = (ms: number, { includesAll } = run) => {
    clock.now = ms;
    return duty.writeDue({ includesAll }, writeGate);
  };
  return { duty, leases, deleted, script, runAt };
}

const leaseOf = (identity: string): string => presenceLeaseOf(identity)!;

it('entries of a running replica are kept however long it runs', async () => {
  const world = createDuty([entry('vm-1', other)]);
  for (let i = 0; i < 20; i++) {
    world.leases.set(leaseOf(other), `${i}`);
    await world.runAt(i * 10_000);
  }
  expect(world.deleted).toEqual([]);
});

it('entries of a running replica are kept however many unrelated Leases exist', async () => {
  const world = createDuty([entry('vm-1', other)], { unrelatedLeases: 1_200 });
  for (let i = 0; i < 20; i++) {
    world.leases.set(leaseOf(other), `${i}`);
    expect(await world.runAt(i * 10_000)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  }
  expect(world.deleted).toEqual([]);
});

it('entries of all replicas are kept if the list of Leases is incomplete', async () => {
  const world = createDuty([entry('vm-1', other)], { unrelatedLeases: 10_001 });
  for (const ms of [0, 50_000]) {
    expect(await world.runAt(ms)).toMatchObject({ failedCount: 1, reason: expect.stringContaining('more than 10000') });
  }
  expect(world.deleted).toEqual([]);
});

it('entries of a replica with an unchanged Lease are deleted after the Lease duration and grace period, followed by the Lease', async () => {
  const world = createDuty([entry('vm-1', other), entry('vm-2', other)]);
  world.leases.set(leaseOf(other), '7');
  await world.runAt(0);
  await world.runAt(24_999);
  expect(world.deleted).toEqual([]);
  expect(await world.runAt(25_000)).toEqual({ writtenCount: 3, failedCount: 0, reason: '' });
  expect(world.deleted).toEqual(['vm-1 of vm-1', 'vm-2 of vm-2', `${leaseOf(other)} 7`]);
});

it('entries of many invented replicas in one namespace do not delay deletions in another namespace', async () => {
  const invented = Array.from({ length: 1_000 }, (_, i) => {
    const controller = `istiod-x_${(0x33333333 + i).toString(16)}`;
    return entry(`flood-${i}`, controller, 'vm', 'mallory');
  });
  const world = createDuty([...invented, entry('vm-1', other, 'vm', 'bank')]);
  await world.runAt(0);
  await world.runAt(25_000);
  expect(world.deleted.length).toBe(200);
  expect(world.deleted).toContain('vm-1 of vm-1');
});

it('entries of a replica without a Lease are deleted after the time that a starting replica has to create its Lease', async () => {
  const world = createDuty([entry('vm-1', other)]);
  await world.runAt(0);
  await world.runAt(24_999);
  world.leases.set(leaseOf(other), '1');
  await world.runAt(30_000);
  world.leases.delete(leaseOf(other));
  await world.runAt(40_000);
  await world.runAt(64_999);
  expect(world.deleted).toEqual([]);
  await world.runAt(65_000);
  expect(world.deleted).toEqual(['vm-1 of vm-1']);
});

it.each([
  ['a failed list', { fails: true, includesAll: false }],
  ['a lost term', { fails: false, includesAll: true }],
])('time before %s is not counted, because no replica could renew its Lease', async (_, { fails, includesAll }) => {
  const world = createDuty([entry('vm-1', other)]);
  world.leases.set(leaseOf(other), '7');
  await world.runAt(0, { ...run, includesAll: true });
  if (fails) {
    world.script.unlisted = true;
    await world.runAt(30_000);
    world.script.unlisted = false;
  }
  // The Lease was absent in the renewed term.
  await world.runAt(60_000, { ...run, includesAll });
  expect(world.deleted).toEqual([]);
  world.leases.set(leaseOf(other), '8');
  await world.runAt(65_000);
  await world.runAt(89_999);
  expect(world.deleted).toEqual([]);
  await world.runAt(90_000);
  expect(world.deleted).toEqual(['vm-1 of vm-1', `${leaseOf(other)} 8`]);
});

it("entries of this replica, of Istio's replicas and of users are kept", async () => {
  const entries = [
    ...[entry('mine', me), entry('of-istio', 'istiod-c8479896c-9tmqc'), entry('by-hand', other, undefined)],
    entry('of-nobody', undefined),
  ];
  entries[2] = { metadata: { ...entries[2]!.metadata, annotations: { 'istio.io/workloadController': other } } };
  const world = createDuty(entries);
  world.leases.set(leaseOf(me), '1');
  for (const ms of [0, 50_000, 100_000]) await world.runAt(ms);
  expect(world.deleted).toEqual([]);
});

describe('the deletion of an orphaned entry', () => {
  const status = (code: number) => ({ kind: 'status', code, reason: '', message: 'no', causes: [] }) as const;

  it('is not retried if a workload has claimed the entry again', async () => {
    const world = createDuty([entry('vm-1', other)]);
    await world.runAt(0);
    world.script.refusal = new ApiError(status(409));
    expect(await world.runAt(30_000)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  });

  it('is retried if the deletion or reading the Leases fails', async () => {
    const world = createDuty([entry('vm-1', other)]);
    world.script.unlisted = true;
    expect(await world.runAt(0)).toEqual({ writtenCount: 0, failedCount: 1, reason: 'no answer' });
    world.script.unlisted = false;
    await world.runAt(1_000);
    world.script.refusal = new ApiError(status(503));
    expect(await world.runAt(30_000)).toEqual({ writtenCount: 0, failedCount: 1, reason: 'no [API_REQUEST_REJECTED]' });
  });
});

it('the deletion of orphaned entries is due while other replicas have entries', async () => {
  const entries = [entry('mine', me)];
  const { duty, runAt } = createDuty(entries);
  let dueCount = 0;
  duty.watch(() => void dueCount++);
  duty.check();
  expect([duty.isDue, dueCount]).toEqual([false, 0]);
  entries.push(entry('vm-1', other));
  duty.check();
  expect([duty.isDue, dueCount]).toEqual([true, 1]);
  await runAt(0);
  expect(duty.isDue).toBe(false);
});

it('records of an exited replica are ended even if it has no entries, and those of a running replica are kept', async () => {
  const third = 'istiod-c_33333333';
  const leases = new Set([other, third].map(leaseOf));
  const endedLeases: string[] = [];
  const {
    duty,
    leases: leaseStore,
    runAt,
  } = createDuty([], { words: { leases, onReplicaEnded: (lease) => void endedLeases.push(lease) } });
  leaseStore.set(leaseOf(other), '7');
  duty.check();
  expect(duty.isDue).toBe(true);
  for (const [index, ms] of [0, 24_999].entries()) {
    leaseStore.set(leaseOf(third), `${index}`);
    await runAt(ms);
  }
  expect(endedLeases).toEqual([]);
  leaseStore.set(leaseOf(third), '2');
  await runAt(25_000);
  expect(endedLeases).toEqual([leaseOf(other)]);
});

it("the name of a replica's Lease is derived only from its identity", () => {
  expect(presenceLeaseOf(me)).toBe('istiod-replica-11111111');
  expect(presenceLeaseOf(`istiod_${crypto.randomUUID()}`)).toMatch(/^istiod-replica-[0-9a-f-]{36}$/);
  expect(['istiod', 'istiod_', '_../../x', 'istiod_UPPER123'].map(presenceLeaseOf)).toEqual(
    Array.from({ length: 4 }, () => undefined),
  );
});
