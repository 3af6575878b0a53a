/** What a cluster's objects cost and become, behind a simulated API server: many of a kind, hostile ones, a server that is slow. */
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

function given(prepare: (world: KubernetesWorld) => void = () => {}) {
  const world = new KubernetesWorld({ resources: [slices, routes, policies], silently: true });
  const kinds = ['EndpointSlice', 'VirtualService', 'AuthorizationPolicy'] as const;
  // A busy machine would leave objects for the next reading.
  const maxReadMs = Number.POSITIVE_INFINITY;
  const source = new ClusterSource({ address: 'k8s://', informers: world.effects, kinds, revision: '', maxReadMs });
  const moved: string[] = [];
  source.watch({ changed: (kind) => moved.push(kind), failed: () => {} });
  prepare(world);
  return { world, source, moved };
}

const addressed = (address: string) => ({
  ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80 }] },
  endpoints: [{ addresses: [address], conditions: { ready: true } }],
});

/** As deep as an API server takes it, nearly. */
const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

/** Lets virtual time pass while a reading waits. */
async function firstReading({ world, source }: ReturnType<typeof given>) {
  const reading = source.read();
  await world.pass(5_000);
  return reading;
}

/** How often an object of the store is looked at, and how often all of them are. */
function looksAt(store: ObjectStore): { one: number; all: number } {
  const looks = { one: 0, all: 0 };
  const [get, entries] = [store.get.bind(store), store.entries.bind(store)];
  store.get = (key) => {
    looks.one++;
    return get(key);
  };
  store.entries = () => {
    looks.all++;
    return entries();
  };
  return looks;
}

/** A simulated server keeps each of its versions whole. */
const many = sized({ short: 1_000, full: 10_000 });

it('one of many that changes is looked at alone, and those of which nothing differs are the same objects as before', async () => {
  const one = given(({ server }) => {
    for (let index = 0; index < many; index++) server.put(slices, `slice-${index}`, addressed('10.0.0.1'));
  });
  const { world, source, moved } = one;
  await firstReading(one);
  expect(source.snapshot.byKey.size).toBe(many);
  const [key, untouched] = [...source.snapshot.byKey].find(([name]) => name.endsWith('/slice-7'))!;
  moved.splice(0);
  world.server.put(slices, 'slice-900', addressed('10.0.0.2'));
  await world.pass(10);
  const looks = looksAt(world.effects.storeOf(slices));
  const reading = await source.read();
  expect(moved).toEqual(['EndpointSlice']);
  expect(looks).toEqual({ one: 1, all: 0 });
  expect(reading).toMatchObject({ outcome: 'read', problems: [] });
  expect(reading.outcome === 'read' && [...reading.touched]).toEqual([key.replace('slice-7', 'slice-900')]);
  expect(source.snapshot.byKey.get(key)).toBe(untouched);
  // Written again with what it has already: nobody is told of it.
  world.server.put(slices, 'slice-900', addressed('10.0.0.2'));
  await world.pass(10);
  expect(await source.read()).toMatchObject({ touched: new Set() });
});

it('the first reading waits for all kinds, however slow the server is, and nothing is half there meanwhile', async () => {
  const one = given(({ server }) => {
    server.put(routes, 'web', { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } });
    server.kill();
  });
  let isRead = false;
  const reading = one.source.read().then(() => {
    isRead = true;
  });
  await one.world.pass(120_000);
  expect([isRead, one.source.snapshot.byKey.size]).toEqual([false, 0]);
  expect(one.world.effects.awaited.map(({ name }) => name)).toContain('networking.istio.io/v1/virtualservices');
  one.world.server.start();
  await one.world.pass(10_000);
  await reading;
  expect(one.source.snapshot.byKey.size).toBe(1);
  expect(one.world.effects.awaited).toEqual([]);
});

it.each<[string, Record<string, unknown>]>([
  ['no spec', {}],
  ['null for one', { spec: null }],
  ['an empty one', { spec: {} }],
  ['a text for one', { spec: 'allow' }],
  ['null for a list', { spec: { action: 'ALLOW', rules: null } }],
  ['an action that nobody knows', { spec: { action: '', rules: [{}] } }],
  ['lists in lists, deeper than anything reads them', { spec: { action: 'ALLOW', rules: [nested(9_000)] } }],
])('a restriction with %s never lets in more, and takes nothing else away', async (_, fields) => {
  const one = given(({ server }) => {
    server.put(policies, 'strange', fields);
    server.put(slices, 'good', addressed('10.0.0.1'));
  });
  await firstReading(one);
  const { source } = one;
  const policy = [...source.snapshot.byKey.values()].find(({ kind }) => kind === 'AuthorizationPolicy');
  // What stands in for it, or what it says: a policy without a rule lets nobody in.
  expect(policy).toBeDefined();
  expect(policy?.standsFor !== undefined || JSON.stringify(policy?.spec).includes('"rules":[]')).toBe(true);
  expect([...source.snapshot.byKey.values()].some(({ name }) => name === 'good')).toBe(true);
  one.world.server.delete(policies, 'strange');
  await one.world.pass(10);
  await source.read();
  expect([source.problemCount, source.snapshot.byKey.size]).toEqual([0, 1]);
});

it('an object that was deleted and made again in one moment is another one, though it says the same', async () => {
  const said = { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } };
  const one = given(({ server }) => server.put(routes, 'web', said));
  await firstReading(one);
  const { source, world } = one;
  const [before] = source.snapshot.byKey.values();
  world.server.delete(routes, 'web');
  world.server.put(routes, 'web', said);
  await world.pass(10);
  await source.read();
  const [now] = source.snapshot.byKey.values();
  expect(now?.resourceVersion).toBe(before?.resourceVersion);
  expect(now?.uid).not.toBe(before?.uid);
});

it('what a decoder breaks on leaves its last good version, closes what restricts, and costs no other object', async () => {
  const route = { spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 404 } }] } };
  const one = given(({ server }) => server.put(routes, 'web', route));
  await firstReading(one);
  const { source, world } = one;
  const [good] = source.snapshot.byKey.values();
  const broken = [kinds.VirtualService, kinds.AuthorizationPolicy].map((kind) => {
    const decode = kind.decode.bind(kind) as (spec: unknown, namespace: string) => never;
    return vi.spyOn(kind, 'decode').mockImplementation((spec: unknown, namespace: string) => {
      if (typeof spec === 'object' && spec !== null && 'breaks' in spec) throw new RangeError('too much');
      return decode(spec, namespace);
    });
  });
  onTestFinished(() => {
    for (const spy of broken) spy.mockRestore();
  });
  world.server.put(routes, 'web', { spec: { ...route.spec, breaks: true } });
  world.server.put(policies, 'strict', { spec: { breaks: true } });
  world.server.put(routes, 'other', route);
  await world.pass(10);
  const message = 'cannot be decoded: too much';
  expect(await source.read()).toMatchObject({ outcome: 'read', problems: [{ message }, { message }] });
  const held = [...source.snapshot.byKey.values()];
  expect(held).toContain(good);
  expect(held.find(({ kind }) => kind === 'AuthorizationPolicy')?.standsFor?.effect).toMatch(/^every request/);
  expect(held.map(({ name }) => name)).toContain('other');
});

it('what is wrong leaves the last good one, is counted once, and is said to be mended', async () => {
  const route = (timeout: string) => ({
    spec: { hosts: ['web.example.com'], http: [{ timeout, route: [{ destination: { host: 'a.test' } }] }] },
  });
  const one = given(({ server }) => server.put(routes, 'web', route('3s')));
  await firstReading(one);
  const { source, world } = one;
  const [good] = source.snapshot.byKey.values();
  for (const bad of ['soon', 'later']) {
    world.server.put(routes, 'web', route(bad));
    await world.pass(10);
    expect(await source.read()).toMatchObject({
      problems: [{ place: { source: 'k8s://' }, field: 'spec.http[0].timeout' }],
    });
    expect(source.problemCount).toBe(1);
    expect([...source.snapshot.byKey.values()]).toEqual([good]);
  }
  world.server.put(routes, 'web', route('4s'));
  await world.pass(10);
  expect(await source.read()).toMatchObject({
    recovered: [expect.stringMatching(/^k8s:\/\/: VirtualService .*\/web$/)],
  });
  expect(source.problemCount).toBe(0);
});

it('an object whose newest version is refused is told of with its generation and mistakes, and when it is in order or gone', async () => {
  const one = given();
  const { world, source } = one;
  const told: [key: string, generation: number | undefined, errors: string[]][] = [];
  source.onRefused(({ kind, key, generation, errors }) => {
    told.push([`${kind}/${key}`, generation, errors.map(({ field }) => field)]);
  });
  await firstReading(one);
  const good = { hosts: ['a.test'], http: [{ route: [{ destination: { host: 'a.test' } }] }] };
  const read = async (): Promise<void> => {
    await world.pass(1_000);
    await source.read();
  };
  world.server.put(routes, 'web', { spec: good });
  await read();
  expect(told).toEqual([]);
  world.server.put(routes, 'web', { spec: { ...good, http: [{ ...good.http[0], timeout: 'soon' }] } });
  await read();
  const [[key, , errors] = []] = told;
  expect([key, errors]).toEqual(['VirtualService/default/web', ['spec.http[0].timeout']]);
  world.server.put(routes, 'web', { spec: good });
  await read();
  expect(told.slice(1).map(([, , fields]) => fields)).toEqual([[]]);
  expect(source.snapshot.byKey.get('VirtualService/default/web')?.status).toBeUndefined();
});
