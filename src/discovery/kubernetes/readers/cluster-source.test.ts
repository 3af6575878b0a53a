/** Reads a cluster's objects from a simulated API server. Covers many objects of a kind, hostile objects and a slow server. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { KubernetesWorld } from '../../../../test/simulation/kubernetes-world.ts';
import { kinds } from '../../../model/kinds/index.ts';
import { resourceOf } from '../api-resource.ts';
import type { ObjectStore } from '../store/object-store.ts';
import { ClusterSource } from './cluster-source.ts';

const slices = resourceOf('EndpointSlice');
const routes = resourceOf('VirtualService');
const policies = resourceOf('AuthorizationPolicy');

function createSource(prepare: (world: KubernetesWorld) => void = () => {}) {
  const world = new KubernetesWorld({ resources: [slices, routes, policies], recordsNothing: true });
  const kinds = ['EndpointSlice', 'VirtualService', 'AuthorizationPolicy'] as const;
  // With a limit, some objects would remain for the next read on a busy machine.
  const maxReadMs = Number.POSITIVE_INFINITY;
  const source = new ClusterSource({ address: 'k8s://', informers: world.effects, kinds, revision: '', maxReadMs });
  const changedKinds: string[] = [];
  source.watch({ changed: (kind) => changedKinds.push(kind), failed: () => {} });
  prepare(world);
  return { world, source, moved: changedKinds };
}

const entryWith = (address: string) => ({
  ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80 }] },
  endpoints: [{ addresses: [address], conditions: { ready: true } }],
});

/** Close to the maximum depth that an API server accepts. */
const nestedLists = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

/** Advances virtual time while a read waits. */
async function firstReading({ world, source }: ReturnType<typeof createSource>) {
  const pendingRead = source.read();
  await world.passTime(5_000);
  return pendingRead;
}

/** Counts reads of single objects and of all objects in a store. */
function countReads(store: ObjectStore): { one: number; all: number } {
  const reads = { one: 0, all: 0 };
  const [get, entries] = [store.get.bind(store), store.entries.bind(store)];
  store.get = (key) => {
    reads.one++;
    return get(key);
  };
  store.entries = () => {
    reads.all++;
    return entries();
  };
  return reads;
}

/** The simulated server keeps all versions in memory. */
const objectCount = sized({ short: 1_000, full: 10_000 });

it('only the changed object is decoded, and unchanged objects are reused', async () => {
  const one = createSource(({ server }) => {
    for (let index = 0; index < objectCount; index++) server.put(slices, `slice-${index}`, entryWith('10.0.0.1'));
  });
  const { world, source, moved } = one;
  await firstReading(one);
  expect(source.snapshot.byKey.size).toBe(objectCount);
  const [key, untouched] = [...source.snapshot.byKey].find(([name]) => name.endsWith('/slice-7'))!;
  moved.splice(0);
  world.server.put(slices, 'slice-900', entryWith('10.0.0.2'));
  await world.passTime(10);
  const reads = countReads(world.effects.storeOf(slices));
  const readResult = await source.read();
  expect(moved).toEqual(['EndpointSlice']);
  expect(reads).toEqual({ one: 1, all: 0 });
  expect(readResult).toMatchObject({ outcome: 'read', problems: [] });
  expect(readResult.outcome === 'read' && [...readResult.touchedKeys]).toEqual([key.replace('slice-7', 'slice-900')]);
  expect(source.snapshot.byKey.get(key)).toBe(untouched);
  // An unchanged object is written again; readers are not notified.
  world.server.put(slices, 'slice-900', entryWith('10.0.0.2'));
  await world.passTime(10);
  expect(await source.read()).toMatchObject({ touchedKeys: new Set() });
});

it('the first read completes only when all kinds are received, even from a slow server, and is not visible earlier', async () => {
  const one = createSource(({ server }) => {
    server.put(routes, 'web', { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } });
    server.kill();
  });
  let isRead = false;
  const pendingRead = one.source.read().then(() => {
    isRead = true;
  });
  await one.world.passTime(120_000);
  expect([isRead, one.source.snapshot.byKey.size]).toEqual([false, 0]);
  expect(one.world.effects.unsyncedKinds.map(({ name }) => name)).toContain('networking.istio.io/v1/virtualservices');
  one.world.server.start();
  await one.world.passTime(10_000);
  await pendingRead;
  expect(one.source.snapshot.byKey.size).toBe(1);
  expect(one.world.effects.unsyncedKinds).toEqual([]);
});

it.each<[string, Record<string, unknown>]>([
  ['no spec', {}],
  ['a null spec', { spec: null }],
  ['an empty spec', { spec: {} }],
  ['a text as spec', { spec: 'allow' }],
  ['null as list of rules', { spec: { action: 'ALLOW', rules: null } }],
  ['an unknown action', { spec: { action: '', rules: [{}] } }],
  ['deeply nested lists', { spec: { action: 'ALLOW', rules: [nestedLists(9_000)] } }],
])('an invalid restriction with %s never grants more access, and removes no other objects', async (_, fields) => {
  const one = createSource(({ server }) => {
    server.put(policies, 'strange', fields);
    server.put(slices, 'good', entryWith('10.0.0.1'));
  });
  await firstReading(one);
  const { source } = one;
  const policy = [...source.snapshot.byKey.values()].find(({ kind }) => kind === 'AuthorizationPolicy');
  // Either the placeholder or the policy itself applies. A policy without rules denies all requests.
  expect(policy).toBeDefined();
  expect(policy?.standsFor !== undefined || JSON.stringify(policy?.spec).includes('"rules":[]')).toBe(true);
  expect([...source.snapshot.byKey.values()].some(({ name }) => name === 'good')).toBe(true);
  one.world.server.delete(policies, 'strange');
  await one.world.passTime(10);
  await source.read();
  expect([source.problemCount, source.snapshot.byKey.size]).toEqual([0, 1]);
});

it('an object that is deleted and recreated counts as new, even with the same content', async () => {
  const content = { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } };
  const one = createSource(({ server }) => server.put(routes, 'web', content));
  await firstReading(one);
  const { source, world } = one;
  const [previous] = source.snapshot.byKey.values();
  world.server.delete(routes, 'web');
  world.server.put(routes, 'web', content);
  await world.passTime(10);
  await source.read();
  const [now] = source.snapshot.byKey.values();
  expect(now?.resourceVersion).toBe(previous?.resourceVersion);
  expect(now?.uid).not.toBe(previous?.uid);
});

it('an object whose decoder fails keeps its last valid version, denies access if it restricts access, and affects no other objects', async () => {
  const route = { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } };
  const one = createSource(({ server }) => server.put(routes, 'web', route));
  await firstReading(one);
  const { source, world } = one;
  const [goodConfig] = source.snapshot.byKey.values();
  const decodeSpies = [kinds.VirtualService, kinds.AuthorizationPolicy].map((kind) => {
    const decode = kind.decode.bind(kind) as (spec: unknown, namespace: string) => never;
    return vi.spyOn(kind, 'decode').mockImplementation((spec: unknown, namespace: string) => {
      if (typeof spec === 'object' && spec !== null && 'breaks' in spec) throw new RangeError('too much');
      return decode(spec, namespace);
    });
  });
  onTestFinished(() => {
    for (const spy of decodeSpies) spy.mockRestore();
  });
  world.server.put(routes, 'web', { spec: { ...route.spec, breaks: true } });
  world.server.put(policies, 'strict', { spec: { breaks: true } });
  world.server.put(routes, 'other', route);
  await world.passTime(10);
  const message = 'cannot be decoded: too much';
  expect(await source.read()).toMatchObject({ outcome: 'read', problems: [{ message }, { message }] });
  const storedConfigs = [...source.snapshot.byKey.values()];
  expect(storedConfigs).toContain(goodConfig);
  expect(storedConfigs.find(({ kind }) => kind === 'AuthorizationPolicy')?.standsFor?.effect).toMatch(/^every request/);
  expect(storedConfigs.map(({ name }) => name)).toContain('other');
});

it('an invalid object keeps its last valid version, is counted once, and is reported again when corrected', async () => {
  const route = (timeout: string) => ({
    spec: { hosts: ['web.example.com'], http: [{ timeout, route: [{ destination: { host: 'a.test' } }] }] },
  });
  const one = createSource(({ server }) => server.put(routes, 'web', route('3s')));
  await firstReading(one);
  const { source, world } = one;
  const [goodConfig] = source.snapshot.byKey.values();
  for (const badTimeout of ['soon', 'later']) {
    world.server.put(routes, 'web', route(badTimeout));
    await world.passTime(10);
    expect(await source.read()).toMatchObject({
      problems: [{ place: { source: 'k8s://' }, field: 'spec.http[0].timeout' }],
    });
    expect(source.problemCount).toBe(1);
    expect([...source.snapshot.byKey.values()]).toEqual([goodConfig]);
  }
  world.server.put(routes, 'web', route('4s'));
  await world.passTime(10);
  expect(await source.read()).toMatchObject({
    recovered: [expect.stringMatching(/^k8s:\/\/: VirtualService .*\/web$/)],
  });
  expect(source.problemCount).toBe(0);
});

it('a rejected object is reported with its generation and errors, and again when corrected or deleted', async () => {
  const one = createSource();
  const { world, source } = one;
  const rejections: [key: string, generation: number | undefined, errors: string[]][] = [];
  source.onRejected(({ kind, key, generation, errors }) => {
    rejections.push([`${kind}/${key}`, generation, errors.map(({ field }) => field)]);
  });
  await firstReading(one);
  const goodSpec = { hosts: ['a.test'], http: [{ route: [{ destination: { host: 'a.test' } }] }] };
  const read = async (): Promise<void> => {
    await world.passTime(1_000);
    await source.read();
  };
  world.server.put(routes, 'web', { spec: goodSpec });
  await read();
  expect(rejections).toEqual([]);
  world.server.put(routes, 'web', { spec: { ...goodSpec, http: [{ ...goodSpec.http[0], timeout: 'soon' }] } });
  await read();
  const [[key, , errors] = []] = rejections;
  expect([key, errors]).toEqual(['VirtualService/default/web', ['spec.http[0].timeout']]);
  world.server.put(routes, 'web', { spec: goodSpec });
  await read();
  expect(rejections.slice(1).map(([, , fields]) => fields)).toEqual([[]]);
  expect(source.snapshot.byKey.get('VirtualService/default/web')?.status).toBeUndefined();
});
