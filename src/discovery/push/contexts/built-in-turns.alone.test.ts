/**
 * Services and contexts of a large mesh are built in steps, with other work in between. Readers see no partial result, and requests during the build
 * are processed afterwards.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import { measuredTurns } from '../../../../test/harness/longest-turn.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { MeshState } from './mesh-state.ts';

const services = 5_000;
const namespaces = 300;

const namespaceOf = (index: number): string => `ns-${index % namespaces}`;
const hostOf = (index: number): string => `svc-${index}.${namespaceOf(index)}.test`;

function entry(index: number, addresses = 10): Config {
  return givenObject('ServiceEntry', namespaceOf(index), `se-${index}`, {
    hosts: [hostOf(index)],
    addresses: [],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    endpoints: Array.from({ length: addresses }, (_, at) => ({ address: `10.${index >> 8}.${index & 255}.${at + 1}` })),
  });
}

const rule = (index: number): Config =>
  givenObject('DestinationRule', namespaceOf(index), `dr-${index}`, { host: hostOf(index), trafficPolicy: {} });
const route = (index: number): Config =>
  givenObject('VirtualService', namespaceOf(index), `vs-${index}`, {
    hosts: [hostOf(index)],
    http: [{ route: [{ destination: { host: hostOf(index) } }] }],
  });

const all = Array.from({ length: services }, (_, index) => index);
const mesh = new Map(
  all.flatMap((index) => [entry(index), rule(index), route(index)]).map((one) => [configKeyText(one), one]),
);

let world: GivenWorld;
let state: MeshState;

function put(objects: ReadonlyMap<string, Config>): { key: string; event: 'update' }[] {
  world.directory.snapshot = world.directory.snapshot.withEdits(objects);
  return [...objects.keys()].map((key) => ({ key, event: 'update' as const }));
}

const changedEntries = (count: number, addresses: number): Map<string, Config> =>
  new Map(
    all.slice(0, count).map((index) => [`ServiceEntry/${namespaceOf(index)}/se-${index}`, entry(index, addresses)]),
  );

const endpointsOf = (index: number): number =>
  state.registry.endpoints.get(hostOf(index))?.get(namespaceOf(index))?.length ?? 0;

beforeEach(() => {
  world = new GivenWorld([]);
  state = world.state;
});

describe('MeshState with 5,000 services in 300 namespaces', () => {
  it('computes services in short steps, and publishes them together', async () => {
    put(mesh);
    const seenStates = new Set<string>();
    const observe = (): void => {
      const { registry } = state;
      seenStates.add(`${registry.services.length} services, endpoints of ${[...registry.endpoints.keys()].length}`);
    };
    const first = await measuredTurns(() => state.computeServicesInTurns(), observe);
    expect([...seenStates]).toEqual(['0 services, endpoints of 0', '5000 services, endpoints of 5000']);
    expect(first.result).toMatchObject({ services, endpoints: 10 * services });
    // A step takes 10 ms and may include a garbage collection.
    expect(first.maxMs, JSON.stringify(first.maxMs)).toBeLessThan(first.sumMs / 4);
  });

  it('applies a change of all services and builds their push context in short steps', async () => {
    put(mesh);
    state.computeServices();
    const changes = put(changedEntries(services, 9));
    const seenCounts = new Set<number>();
    const changedServices = await measuredTurns(
      () => state.computeServicesInTurns(changes),
      () => seenCounts.add(endpointsOf(0) + endpointsOf(services - 1)),
    );
    expect([...seenCounts]).toEqual([20, 18]);
    expect(changedServices.result.changedEndpoints).toHaveLength(services);
    expect(changedServices.maxMs, JSON.stringify(changedServices.maxMs)).toBeLessThan(changedServices.sumMs / 4);
    const contexts = new Set<number | undefined>();
    const previous = state.context;
    const built = await measuredTurns(
      () => state.publishContextInTurns({ forced: true, changedKeys: [] }),
      () => contexts.add(state.context === previous ? 0 : state.context?.services.length),
    );
    expect([...contexts]).toEqual([0, services]);
    expect(built.maxMs, JSON.stringify(built.maxMs)).toBeLessThan(0.7 * built.sumMs);
  });
});

describe('MeshState during the computation of services', () => {
  it('builds a requested context after the computation, with the new services', async () => {
    put(mesh);
    const computing = state.computeServicesInTurns();
    const context = await state.publishContextInTurns({ forced: true, changedKeys: [] });
    expect(context.services).toHaveLength(services);
    expect((await computing).services).toBe(services);
  });

  it('applies a further change of the same objects after the computation, without losing either change', async () => {
    put(mesh);
    state.computeServices();
    const secondComputation = state.computeServicesInTurns(put(changedEntries(1_000, 2)));
    const three = state.computeServicesInTurns(put(changedEntries(500, 3)));
    expect((await secondComputation).changedEndpoints).toHaveLength(1_000);
    // A computation reads the objects at its start.
    expect((await three).changedEndpoints).toHaveLength(0);
    expect([endpointsOf(0), endpointsOf(500), endpointsOf(1_000)]).toEqual([3, 2, 10]);
  });

  it('completes an aborted computation together with the next one, which reports all changes', async () => {
    put(mesh);
    state.computeServices();
    const abortController = new AbortController();
    const unheard = state.computeServicesInTurns(put(changedEntries(1_000, 2)), undefined, abortController.signal);
    const completed = state.computeServicesInTurns([]);
    abortController.abort();
    await expect(unheard).rejects.toThrow('aborted');
    expect((await completed).changedEndpoints).toHaveLength(1_000);
    expect([endpointsOf(0), endpointsOf(1_000)]).toEqual([2, 10]);
  });

  it('completes a failed computation together with the next one', async () => {
    put(mesh);
    state.computeServices();
    const changes = put(changedEntries(1_000, 2));
    const { directory } = world;
    const { snapshot } = directory;
    const brokenMap = new Map(snapshot.byKey);
    brokenMap.get = (key) => {
      if (key.endsWith('/se-700')) throw new Error('no memory');
      return snapshot.byKey.get(key);
    };
    directory.snapshot = Object.create(snapshot, { byKey: { value: brokenMap } });
    await expect(state.computeServicesInTurns(changes)).rejects.toThrow('no memory');
    directory.snapshot = snapshot;
    expect((await state.computeServicesInTurns([])).services).toBe(services);
    expect([endpointsOf(0), endpointsOf(700), endpointsOf(1_000)]).toEqual([2, 2, 10]);
  });
});
