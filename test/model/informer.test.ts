/**
 * Kinds of objects on an API server, watched by the statecharts (machines/discovery/kubernetes), with the real effects and stores in front of a
 * simulated server. After each step of a test, every store is compared with the server's state at that version.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { apiServerMachine } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import {
  definitions,
  KubernetesWorld,
  pods,
  routes,
  services,
  type WorldOptions,
} from '../simulation/kubernetes-world.ts';
import { noFaults } from '../simulation/simulated-api-server.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

eachWorldFollowsTheDiagrams(['api-server', 'informer'], ['hand-over'], {
  instances: KubernetesWorld.instances,
  machine: apiServerMachine,
});

let world: KubernetesWorld;
afterEach(() => {
  expect(world.violations).toEqual([]);
  world.end();
});

/** A world with two services, watched for longer than any timeout. */
async function startWorld(options: WorldOptions & { prepare?: (world: KubernetesWorld) => void } = {}): Promise<void> {
  world = new KubernetesWorld(options);
  options.prepare?.(world);
  world.server.put(services, 'a');
  world.server.put(services, 'b');
  await world.passTime(3_000);
}

const requestsFor = (operation: 'list' | 'watch' | 'check', resource = 'v1/services') =>
  world.server.requests.filter((one) => one.operation === operation && one.resource === resource);
const clearRequests = (): void => void world.server.requests.splice(0);
const watchingState = 'active.streaming.watching.established';

describe('a watched kind', () => {
  it('is listed over a stream, published when complete, and watched over that stream', async () => {
    await startWorld();
    world.server.put(services, 'c');
    world.server.delete(services, 'a');
    await world.passTime(10);
    expect(world.names(services)).toEqual(['b', 'c']);
    expect(world.changesOf(services)).toEqual(['add a', 'add b', 'add c', 'delete a']);
    expect(requestsFor('watch')).toMatchObject([{ initial: true }]);
    expect(requestsFor('list')).toEqual([]);
    expect(world.syncedCount).toBe(1);
  });

  it('is published even without objects', async () => {
    await startWorld();
    expect(world.stateOf(routes)).toBe(watchingState);
    expect(world.recordOf(routes).handed).toBe('objects');
  });

  it('is synced when readers have processed it, not when it is received', async () => {
    let handled = (): void => {};
    await startWorld({
      prepare: (world) => {
        world.pendingHandling = new Promise((resolve) => {
          handled = resolve;
        });
      },
    });
    expect(world.stateOf(services)).toBe('active.streaming.publishing');
    expect(world.syncedCount).toBe(0);
    world.server.put(services, 'c');
    handled();
    await world.passTime(10);
    expect(world.syncedCount).toBe(1);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
  });

  it('is published even if a handler throws, and the error is reported', async () => {
    world = new KubernetesWorld();
    world.effects.addReader(services, () => {
      throw new Error('a bug');
    });
    world.server.put(services, 'a');
    await world.passTime(100);
    world.server.put(services, 'b');
    await world.passTime(100);
    expect(world.faults.map(String)).toEqual(['Error: a bug', 'Error: a bug']);
    expect(world.names(services)).toEqual(['a', 'b']);
  });

  it('is updated with a deletion and an addition if an object was recreated unobserved', async () => {
    await startWorld();
    world.server.kill();
    world.server.delete(services, 'a');
    world.server.put(services, 'a');
    world.server.compact();
    world.server.start();
    await world.passTime(2_000);
    expect(world.changesOf(services).slice(2)).toEqual(['delete a', 'add a']);
  });
});

describe('the informer', () => {
  it('requests pages for all kinds, until the next outage, from a server that never ends a streaming list', async () => {
    await startWorld({ prepare: ({ server }) => (server.faults.hasEndlessLists = true) });
    await world.passTime(1_000);
    expect(world.names(services)).toEqual(['a', 'b']);
    expect(world.recordOf(routes).streams).toBe(false);
    world.server.faults = { ...noFaults };
    world.server.kill();
    await world.passTime(100);
    world.server.put(services, 'c');
    world.server.put(services, 'c');
    world.server.compact();
    world.server.start();
    clearRequests();
    await world.passTime(2_000);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
    expect(requestsFor('watch').some(({ initial }) => initial)).toBe(true);
  });

  it('requests only one streaming list from a server that does not support them', async () => {
    await startWorld({ prepare: ({ server }) => (server.faults.withoutStreams = true) });
    expect(world.names(services)).toEqual(['a', 'b']);
    const initialWatches = world.server.requests.filter(({ operation, initial }) => operation === 'watch' && initial);
    expect(initialWatches).toHaveLength(1);
    clearRequests();
    world.server.compact();
    world.server.put(services, 'c');
    world.server.endWatch(0, 'closed');
    await world.passTime(3_000);
    expect(world.server.requests.filter(({ operation, initial }) => operation === 'watch' && initial)).toEqual([]);
  });

  it('requests a newer list if the resource version has expired, and keeps the objects of the kind', async () => {
    await startWorld();
    world.server.put(services, 'c');
    await world.passTime(10);
    world.server.kill();
    world.server.put(services, 'd');
    world.server.put(services, 'd');
    world.server.compact();
    clearRequests();
    world.server.start();
    await world.passTime(2_000);
    expect(requestsFor('watch')).toMatchObject([
      { initial: false, version: '104' },
      { initial: true, version: '104' },
    ]);
    expect(world.changesOf(services).slice(-1)).toEqual(['add d']);
  });

  it('replaces newer objects if the server was restored to an earlier version', async () => {
    await startWorld();
    world.server.backUp();
    for (const name of ['c', 'd', 'e']) world.server.put(services, name);
    await world.passTime(10);
    world.server.kill();
    await world.passTime(1_000);
    world.server.restore();
    world.server.start();
    await world.passTime(3_000);
    expect(world.names(services)).toEqual(['a', 'b']);
    world.server.put(services, 'x');
    await world.passTime(10);
    expect(world.names(services)).toEqual(['a', 'b', 'x']);
  });

  it('immediately requests the most recent list if the server lags behind the last received version', async () => {
    await startWorld();
    world.server.put(services, 'c');
    await world.passTime(10);
    // The server's history is empty, and no recent list is available, as at a replica that was restored separately.
    const actor = world.informer(services);
    clearRequests();
    const failure = { kind: 'status', code: 504, message: 'too large', causes: ['ResourceVersionTooLarge'] };
    actor.send({ type: 'request.failed', failure, draw: 0.5 });
    expect(world.recordOf(services)).toMatchObject({ isWhole: false, basis: 'newest' });
    await world.passTime(100);
    expect(requestsFor('watch')).toMatchObject([{ initial: true, version: undefined }]);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
  });

  it('requests full lists after a long outage, because a restored server can have reached the same version', async () => {
    await startWorld();
    world.server.backUp();
    world.server.put(services, 'c');
    await world.passTime(10);
    world.server.kill();
    await world.passTime(12_000);
    world.server.restore();
    world.server.put(services, 'd');
    world.server.put(services, 'e');
    world.server.start();
    await world.passTime(3_000);
    expect(world.names(services)).toEqual(['a', 'b', 'd', 'e']);
  });

  it('delays its requests if the server ends each watch immediately', async () => {
    await startWorld({ prepare: ({ server }) => (server.faults.endsWatchesEarly = true) });
    clearRequests();
    await world.passTime(60_000);
    expect(requestsFor('watch').length + requestsFor('list').length + requestsFor('check').length).toBeLessThan(90);
    world.server.faults.endsWatchesEarly = false;
    await world.passTime(5_000);
    expect(world.differences()).toEqual([]);
  });

  it('starts another watch without a list if the server ends a watch after some minutes', async () => {
    await startWorld();
    clearRequests();
    await world.passTime(3_600_000);
    expect(requestsFor('list')).toEqual([]);
    expect(requestsFor('watch').every(({ initial }) => !initial)).toBe(true);
    expect(requestsFor('watch').length).toBeGreaterThan(5);
    expect(requestsFor('watch').length).toBeLessThan(13);
  });

  it('sends no request to an overloaded server before its Retry-After time', async () => {
    await startWorld({ prepare: ({ server }) => (server.faults.isThrottled = true) });
    const times = requestsFor('watch').map(({ at }) => at);
    expect(
      times
        .slice(1)
        .map((at, index) => at - times[index]!)
        .every((pause) => pause >= 1_000),
    ).toBe(true);
    await world.passTime(20_000);
    // Objects that are too many for a streamed list may fit a paged list.
    expect(requestsFor('list').length).toBeGreaterThan(0);
    world.server.faults.isThrottled = false;
    await world.passTime(5_000);
    expect(world.names(services)).toEqual(['a', 'b']);
  });

  it('removes nothing if the server rejects the credentials, and later watches from the last version', async () => {
    await startWorld();
    world.server.faults.expiredToken = true;
    world.server.endWatch(0, 'ended');
    await world.passTime(20_000);
    expect(world.names(services)).toEqual(['a', 'b']);
    world.server.put(services, 'c');
    clearRequests();
    world.server.faults.expiredToken = false;
    await world.passTime(5_000);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
    expect(requestsFor('watch')).toMatchObject([{ initial: false }]);
  });
});

describe('an unresponsive server', () => {
  it('delays all kinds at start, without an empty list being published', async () => {
    world = new KubernetesWorld();
    world.server.kill();
    await world.passTime(60_000);
    expect(world.syncedCount).toBe(0);
    expect(world.changesOf(services)).toEqual([]);
    expect(world.lostReasons).toEqual(['reset [API_CONNECTION_CLOSED]']);
    expect(world.server.requests).toEqual([]);
    world.server.put(services, 'a');
    world.server.start();
    await world.passTime(3_000);
    expect(world.names(services)).toEqual(['a']);
    expect(world.lostReasons).toEqual(['reset [API_CONNECTION_CLOSED]', undefined]);
  });

  it('is detected by a ping within 4 s if bytes are dropped, and another connection is opened', async () => {
    await startWorld();
    const { connections } = world.server;
    world.server.dropBytes();
    world.server.passBytes();
    world.server.put(services, 'c');
    await world.passTime(4_000);
    expect(world.server.connections).toBe(connections + 1);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
    expect(world.lostReasons).toEqual([]);
  });

  it('is queried continuously, at different times by each replica', async () => {
    await startWorld();
    world.server.kill();
    await world.passTime(10_000);
    world.server.pingTimes.splice(0);
    await world.passTime(30_000);
    const pauses = world.server.pingTimes.slice(1).map((at, index) => at - world.server.pingTimes[index]!);
    expect(Math.max(...pauses)).toBeLessThan(2_000);
    expect(Math.min(...pauses)).toBeGreaterThan(700);
    expect(new Set(pauses.map(Math.round)).size).toBeGreaterThan(5);
  });

  it('has its kinds resumed one after the other when it responds again', async () => {
    const manyResources = Array.from({ length: 20 }, (_, index) => ({ ...pods, plural: `kind${index}` }));
    await startWorld({ resources: [services, ...manyResources] });
    world.server.kill();
    await world.passTime(3_000);
    clearRequests();
    world.server.start();
    await world.passTime(2_000);
    const checks = world.server.requests.filter(({ operation }) => operation === 'check').map(({ at }) => at);
    expect(checks).toHaveLength(21);
    expect(new Set(checks).size).toBe(21);
    expect(Math.max(...checks) - Math.min(...checks)).toBeLessThan(500);
    expect(world.differences()).toEqual([]);
  });

  it('delays only one kind if only one stream is affected', async () => {
    await startWorld();
    clearRequests();
    world.server.endWatch(0, 'closed');
    world.server.put(services, 'c');
    await world.passTime(100);
    expect(world.names(services)).toEqual(['a', 'b', 'c']);
    expect(new Set(world.server.requests.map(({ resource }) => resource))).toEqual(new Set(['v1/services']));
    expect(world.lostReasons).toEqual([]);
  });
});

describe('a kind that the server does not know', () => {
  it('is synced and empty, is requested at increasing intervals, and is listed as soon as it is defined', async () => {
    world = new KubernetesWorld();
    world.server.undefineResource(routes, definitions);
    await world.passTime(3_000);
    expect(world.syncedCount).toBe(1);
    expect(world.recordOf(routes).handed).toBe('absence');
    const name = 'networking.istio.io/v1/virtualservices';
    await world.passTime(300_000);
    expect(requestsFor('watch', name).length).toBeLessThan(20);
    world.server.defineResource(routes, definitions);
    world.server.put(routes, 'r');
    await world.passTime(50);
    expect(world.names(routes)).toEqual(['r']);
  });

  it('is eventually detected without an event about its definition', async () => {
    world = new KubernetesWorld({ resources: [services, routes] });
    world.server.undefineResource(routes, definitions);
    await world.passTime(100_000);
    world.server.defineResource(routes, definitions);
    world.server.put(routes, 'r');
    await world.passTime(46_000);
    expect(world.names(routes)).toEqual(['r']);
  });

  it('is removed when its definition is, but not after a single response', async () => {
    await startWorld({ prepare: ({ server }) => server.put(routes, 'r') });
    world.server.forgetsKinds = true;
    world.server.endWatch(1, 'ended');
    await world.passTime(300);
    world.server.forgetsKinds = false;
    await world.passTime(3_000);
    expect(world.changesOf(routes)).toEqual(['add r']);
    world.server.undefineResource(routes, definitions);
    await world.passTime(2_000);
    expect(world.names(routes)).toEqual([]);
    expect(world.recordOf(routes).handed).toBe('absence');
  });

  it('is not emptied if it is unknown only briefly after an incompletely processed list', async () => {
    await startWorld({
      prepare: (world) => {
        world.pendingHandling = new Promise(() => {});
        world.server.put(routes, 'r');
      },
    });
    expect(world.stateOf(routes)).toBe('active.streaming.publishing');
    world.server.forgetsKinds = true;
    world.server.kill();
    world.server.start();
    await world.passTime(500);
    world.server.forgetsKinds = false;
    world.pendingHandling = undefined;
    await world.passTime(3_000);
    expect(world.changesOf(routes)).toEqual(['add r']);
    expect(world.stateOf(routes)).toBe(watchingState);
  });
});
