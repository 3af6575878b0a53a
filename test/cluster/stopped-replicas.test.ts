/**
 * Two replicas as programs, each behind a proxy that records its writes. The leader is suspended (SIGSTOP) for longer than its Lease, before, during
 * and after writes, and resumes after the other one has done the work: it starts no write, and no late write takes effect.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { leases } from '../../src/discovery/kubernetes/api-resource.ts';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, of } from './mesh-objects.ts';
import { RecordingProxy } from './recording-proxy.ts';
import { type Replica, Replicas } from './replica.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const neverAborted = new AbortController().signal;
const lease = 'istio-namespace-controller-election';
const root = 'istio-ca-root-cert';
const leaseMs = 3_000;
/** Maximum difference between clocks that are read at different moments, in milliseconds. */
const clockSkewMs = 50;
const replicas = new Replicas(cluster, { SELF_SIGNED_CA_SECRET: 'istio-ca-secret', PILOT_LEASE_DURATION: '3s' });
const names = ['one', 'two'] as const;
type Name = (typeof names)[number];
const proxies = new Map<Name, RecordingProxy>();
const programs = new Map<Name, Replica>();
/** More than a replica writes concurrently. */
const shops = Array.from({ length: 12 }, (_, index) => `shop-${index}`);

beforeAll(async () => {
  await defineKinds(cluster);
  for (const name of shops) await cluster.create(of.namespaces, { metadata: { name } });
  const start = async (name: Name): Promise<void> => {
    const proxy = await RecordingProxy.startFor(cluster.address);
    proxies.set(name, proxy);
    programs.set(name, await replicas.start(name, undefined, proxy.address));
  };
  await Promise.all(names.map(start));
});
afterAll(() => {
  for (const proxy of proxies.values()) proxy.close();
});

async function read(resource: typeof leases, name: string, namespace = cluster.namespace) {
  return cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
}

async function leader(): Promise<Name | ''> {
  const { spec } = await read(leases, lease);
  return String((spec as { holderIdentity?: string }).holderIdentity ?? '').split('_')[0] as Name | '';
}

/** Versions of the ConfigMaps, by namespace. */
async function roots(): Promise<Map<string, string>> {
  const { items } = await cluster.admin.list(of.configMaps, { fieldSelector: `metadata.name=${root}` }, neverAborted);
  return new Map(items.map(({ metadata }) => [metadata.namespace!, metadata.resourceVersion!]));
}

const allThere = async (): Promise<boolean> => {
  const existingRoots = await roots();
  return shops.every((name) => existingRoots.has(name));
};

async function deleteAll(but?: string): Promise<void> {
  const names = shops.filter((name) => name !== but);
  await Promise.all(names.map((name) => cluster.delete(of.configMaps, root, name)));
}

type Moment = 'before writes' | 'in writes' | 'after writes';

/** A replica that loses its Lease this many times in a row, without being suspended, cannot keep one. */
const maxBeginnings = 5;

/**
 * @param count number of the round
 * @returns how many writes of the suspended replica reached the API server late
 */
async function runRound(moment: Moment, count: number, beginning = 1): Promise<number> {
  await eventually('one leads, and all is written', async () => (await leader()) !== '' && (await allThere()));
  const first = (await leader()) as Name;
  const other = names.find((name) => name !== first)!;
  const [proxy, { pid }] = [proxies.get(first)!, programs.get(first)!.program];
  const release = Promise.withResolvers<void>();
  const from = proxy.dutyWrites().length;
  proxy.hold = ({ path }) => {
    if (path.includes('/leases')) return {};
    if (moment === 'in writes') return { untilForwarded: release.promise };
    return moment === 'after writes' ? { untilResponded: release.promise } : {};
  };
  const leads = async (): Promise<boolean> => (await leader()) === first;
  const writes = (): Promise<unknown> =>
    eventually('it writes, or leads no more', async () => proxy.dutyWrites().length > from || !(await leads()), {
      everyMs: 1,
    });
  // Alternates between changed and created objects.
  const changedShop = moment === 'in writes' && count % 2 === 0 ? shops[(count / 2) % shops.length]! : undefined;
  if (changedShop !== undefined) {
    await cluster.apply(of.configMaps, {
      metadata: { name: root, namespace: changedShop },
      data: { 'root-cert.pem': 'another' },
    });
    await writes();
  }
  await deleteAll(changedShop);
  if (moment === 'before writes') await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
  else await writes();
  // The replica may have lost its Lease because it had no processor time.
  if (!(await leads())) {
    release.resolve();
    proxy.hold = () => ({});
    expect(beginning, `${first} has lost its Lease before it was stopped`).toBeLessThan(maxBeginnings);
    return runRound(moment, count, beginning + 1);
  }
  process.kill(pid, 'SIGSTOP');
  const line = programs.get(first)!.program.lines.length;
  try {
    const { renewTime } = (await read(leases, lease)).spec as { renewTime: string };
    await eventually(`${other} leads`, async () => (await leader()) === other, { everyMs: 20 });
    // The renewal may have been missed.
    const tookMs = Date.now() - Date.parse(renewTime);
    console.log(`${moment}: stopped, and taken over from ${Math.round(tookMs)} ms after its last word`);
    expect(tookMs).toBeGreaterThan(leaseMs - clockSkewMs);
    await eventually('the other one has written all', allThere);
    const previousRoots = await roots();
    const heldWrites = proxy.dutyWrites().filter(({ forwardedAt }) => forwardedAt === undefined);
    // Writes in transit arrive late, and their responses when the replica resumes.
    release.resolve();
    await eventually('all came', () => heldWrites.every(({ status }) => status !== undefined));
    const writesBefore = proxy.dutyWrites().length;
    process.kill(pid, 'SIGCONT');
    await programs.get(first)!.program.line(loggedLine('leader.lost'), { fromLine: line });
    const renewals = (): number => proxies.get(other)!.writes.length - proxies.get(other)!.dutyWrites().length;
    const renewalsBefore = renewals();
    await eventually('time has passed', () => renewals() >= renewalsBefore + 2);
    expect(proxy.dutyWrites().slice(writesBefore), 'writes that began after it woke').toEqual([]);
    // If the other replica has not written an object, a late write takes effect, and loses nothing newer.
    const isLate = ({ path, body, status }: (typeof heldWrites)[number]): boolean =>
      status !== 409 && (path.includes('/configmaps') || !body.includes('"resourceVersion"'));
    expect(heldWrites.filter(isLate)).toEqual([]);
    for (const [namespace, version] of await roots()) expect(version, namespace).toBe(previousRoots.get(namespace));
    expect(await leader()).toBe(other);
    return heldWrites.length;
  } finally {
    proxy.hold = () => ({});
    process.kill(pid, 'SIGCONT');
  }
}

describe.skipIf(isQuick)('a suspended leading replica', () => {
  const rounds = sized({ short: 2, full: 60 });

  it(`starts no write when it resumes, and no late write takes effect, in ${rounds} rounds`, async () => {
    const moments: readonly Moment[] = ['in writes', 'after writes', 'before writes'];
    let lateWrites = 0;
    for (let count = 0; count < rounds; count++) lateWrites += await runRound(moments[count % 3]!, count);
    console.log(`${rounds} rounds, ${lateWrites} writes that came late`);
    expect(lateWrites).toBeGreaterThan(0);
  }, 3_600_000);
});

it('another replica leads within the duration of the Lease after a replica is killed', async () => {
  await eventually('one leads', async () => (await leader()) !== '');
  const first = (await leader()) as Name;
  const other = names.find((name) => name !== first)!;
  process.kill(programs.get(first)!.program.pid, 'SIGKILL');
  const killedAt = performance.now();
  await deleteAll();
  await eventually(`${other} leads`, async () => (await leader()) === other, { everyMs: 20 });
  const tookMs = performance.now() - killedAt;
  console.log(`killed, and taken over from after ${Math.round(tookMs)} ms`);
  expect(tookMs).toBeGreaterThan(leaseMs / 3);
  expect(tookMs).toBeLessThan(sized({ short: 5 * leaseMs, full: 2 * leaseMs }));
  await eventually('it has written what was missing', allThere);
});
