/** The debouncer, under a virtual clock. */
import { describe, expect, it } from 'vitest';
import type { PushOrder, PushReason } from '../../machines/discovery/protocol.ts';
import { DiscoveryWorld, scriptedSettings } from '../simulation/discovery-world.ts';

const config = 'VirtualService/shop/cart';
const endpoints = 'Endpoints/shop/cart.shop.svc.cluster.local';

/** A serving control plane, after its first context. */
async function servingWorld(push: Partial<typeof scriptedSettings.push> = {}): Promise<DiscoveryWorld> {
  return DiscoveryWorld.startServing({ push: { ...scriptedSettings.push, ...push } });
}

function request(world: DiscoveryWorld, order: Partial<PushOrder> = {}): void {
  const reasons: Partial<Record<PushReason, number>> = { config: 1 };
  world.discovery.system
    .get('push')
    ?.send({ type: 'push.request', configs: [config], forced: false, reasons, ...order });
}

/** Times of the builds after the first context, relative to `origin`. */
function buildTimes(world: DiscoveryWorld, origin: number): number[] {
  return world.builds.slice(1).map((build) => build.startedAt - origin);
}

describe('push', () => {
  it('builds a context 100 ms after a single request', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    request(world);
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([100]);
  });

  it('builds one context for requests every 10 ms during 200 ms, 100 ms after the last request', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    for (let ms = 0; ms < 200; ms += 10) {
      request(world);
      await world.passTime(10);
    }
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([290]);
  });

  it('delays a context by no more than 10 s while requests are received every 50 ms', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    for (let ms = 0; ms < 11_000; ms += 50) {
      request(world);
      await world.passTime(50);
    }
    await world.passTime(1_000);
    const [first, second, ...laterTimes] = buildTimes(world, origin);
    expect(first).toBe(10_000);
    expect(second).toBe(11_050);
    expect(laterTimes).toEqual([]);
  });

  it('delays a push by no more than three debounce times while another namespace requests pushes every 50 ms', async () => {
    const world = await servingWorld();
    const tenant = (): void => request(world, { configs: ['ServiceEntry/mallory/flood'] });
    for (let ms = 0; ms < 2_000; ms += 50) {
      tenant();
      await world.passTime(50);
    }
    expect(world.builds).toHaveLength(1);
    const changedAt = world.clock.now();
    request(world, { configs: ['VirtualService/bank/web'] });
    for (let ms = 0; ms < 1_000; ms += 50) {
      tenant();
      await world.passTime(50);
    }
    const [first] = buildTimes(world, changedAt);
    expect(first).toBe(300);
    expect(world.builds[1]!.configs).toContain('VirtualService/bank/web');
  });

  it('builds the next context immediately after the previous one, whatever another namespace requests during that build', async () => {
    const world = await servingWorld();
    world.buildsAtOnce = false;
    const origin = world.clock.now();
    request(world, { configs: ['VirtualService/bank/web'] });
    await world.passTime(100);
    request(world, { configs: ['VirtualService/bank/web'] });
    await world.passTime(150);
    for (let ms = 250; ms < 600; ms += 50) {
      request(world, { configs: ['ServiceEntry/mallory/flood'] });
      await world.passTime(50);
    }
    world.builds[1]!.finish();
    await world.settle();
    expect(buildTimes(world, origin)).toEqual([100, 600]);
  });

  it('waits only for the debounce time after requests of several namespaces', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    for (const namespace of ['a', 'b', 'c']) {
      request(world, { configs: [`VirtualService/${namespace}/web`] });
      await world.passTime(50);
    }
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([200]);
  });

  it('handles a request that is received during a 500 ms build directly after that build', async () => {
    const world = await servingWorld();
    world.buildsAtOnce = false;
    const origin = world.clock.now();
    request(world);
    await world.passTime(200);
    request(world);
    await world.passTime(400);
    expect(buildTimes(world, origin)).toEqual([100]);
    world.builds[1]!.finish();
    await world.settle();
    expect(buildTimes(world, origin)).toEqual([100, 600]);
  });

  it('waits for the debounce time after a build if a request has just been received', async () => {
    const world = await servingWorld();
    world.buildsAtOnce = false;
    const origin = world.clock.now();
    request(world);
    await world.passTime(590);
    request(world);
    await world.passTime(10);
    world.builds[1]!.finish();
    await world.settle();
    expect(buildTimes(world, origin)).toEqual([100]);
    await world.passTime(90);
    expect(buildTimes(world, origin)).toEqual([100, 690]);
  });

  it('builds the next context when the proxies have received the last one, or after 10 s', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    const queue = world.discovery.system.get('push-queue')!;
    queue.send({ type: 'proxy.connected', connection: 1 });
    request(world);
    await world.passTime(200);
    request(world);
    await world.passTime(400);
    expect(buildTimes(world, origin)).toEqual([100]);
    queue.send({ type: 'proxies.served', connections: [1] });
    await world.settle();
    expect(buildTimes(world, origin)).toEqual([100, 600]);
    request(world);
    await world.passTime(20_000);
    expect(buildTimes(world, origin)).toEqual([100, 600, 10_600]);
  });

  it('builds one context at a time', async () => {
    const world = await servingWorld();
    world.buildsAtOnce = false;
    for (let ms = 0; ms < 60_000; ms += 500) {
      request(world);
      await world.passTime(500);
    }
    expect(world.builds).toHaveLength(2);
  });

  it('delays other changes, but not endpoint changes, if debouncing of endpoints is off', async () => {
    const world = await servingWorld({ debounceEndpoints: false });
    const origin = world.clock.now();
    request(world, { configs: [endpoints], reasons: { endpoint: 1 } });
    request(world);
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([0, 100]);
    expect(world.builds.slice(1).map((build) => build.configs)).toEqual([[endpoints], [config]]);
    expect(world.events('clients.push').map((event) => event.configs)).toEqual([[endpoints], [config]]);
  });

  it('builds endpoint changes directly after the current build if debouncing of endpoints is off', async () => {
    const world = await servingWorld({ debounceEndpoints: false });
    world.buildsAtOnce = false;
    request(world);
    await world.passTime(100);
    request(world, { configs: [endpoints] });
    await world.settle();
    expect(world.builds).toHaveLength(3);
    world.builds[2]!.finish();
    await world.settle();
    expect(world.events('clients.push').map((event) => event.configs)).toEqual([[endpoints]]);
  });

  it('delays endpoint changes like other changes by default', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    request(world, { configs: [endpoints] });
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([100]);
  });

  it('delays a full push even if it names endpoints', async () => {
    const world = await servingWorld({ debounceEndpoints: false });
    const origin = world.clock.now();
    request(world, { configs: [endpoints], forced: true });
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([100]);
    expect(world.builds[1]!.forced).toBe(true);
  });

  it('merges requests, pushes each object once, and forces the push if one request is forced', async () => {
    const world = await servingWorld();
    request(world, { configs: [config, 'Gateway/shop/front'] });
    request(world, { configs: [config] });
    request(world, { configs: [], forced: true });
    await world.passTime(100);
    expect(world.events('clients.push')).toMatchObject([{ forced: true, configs: [config, 'Gateway/shop/front'] }]);
    expect(world.events('context.built').at(-1)).toMatchObject({ updates: 3 });
  });

  it('ignores a request that names no objects and is not forced, without delaying others', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    request(world, { configs: [] });
    await world.passTime(1_000);
    expect(buildTimes(world, origin)).toEqual([]);
    request(world);
    await world.passTime(50);
    request(world, { configs: [] });
    await world.passTime(50);
    expect(buildTimes(world, origin)).toEqual([1_100]);
    expect(world.events('context.built').at(-1)).toMatchObject({ updates: 1 });
  });

  it('pushes to no client before the first context is built, and does not delay the first context', async () => {
    const world = new DiscoveryWorld({}, { buildsAtOnce: false });
    await world.settle();
    request(world);
    await world.passTime(5_000);
    expect(world.builds.map((build) => [build.forced, build.startedAt])).toEqual([[true, 0]]);
    expect(world.events('clients.push')).toEqual([]);
    world.builds[0]!.finish();
    await world.passTime(100);
    expect(world.builds.map((build) => build.configs)).toEqual([[], [config]]);
  });

  it('rebuilds a failed context with increasing delays and with all its changes', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    world.buildsAtOnce = false;
    request(world);
    await world.passTime(100);
    for (const wait of [1_000, 2_000, 4_000]) {
      world.builds.at(-1)!.fail('a bug of a generator');
      await world.passTime(wait);
    }
    expect(buildTimes(world, origin)).toEqual([100, 1_100, 3_100, 7_100]);
    expect(world.state()).toBe('active.operating.serving');
    expect(world.events('context.failed')).toHaveLength(3);
    expect(world.events('context.failed')[0]).toMatchObject({ reason: 'a bug of a generator' });
    expect(world.events('clients.push')).toEqual([]);
    world.builds.at(-1)!.finish();
    await world.settle();
    expect(world.events('clients.push')).toMatchObject([{ forced: true, configs: [config] }]);
    expect(world.events('context.built').at(-1)).toMatchObject({ updates: 1 });
    await world.passTime(60_000);
    expect(world.builds).toHaveLength(5);
  });

  it('waits at most 30 s for the next attempt', async () => {
    const world = await servingWorld();
    world.buildsAtOnce = false;
    request(world);
    await world.passTime(100);
    for (let failure = 0; failure < 20; failure++) {
      const { length } = world.builds;
      world.builds.at(-1)!.fail('a bug of a generator');
      await world.passTime(30_000);
      expect(world.builds).toHaveLength(length + 1);
    }
  });

  it('rebuilds a failed context after the next change, which waits only for the debounce time', async () => {
    const world = await servingWorld();
    const origin = world.clock.now();
    world.buildsAtOnce = false;
    request(world);
    await world.passTime(100);
    for (let failure = 0; failure < 5; failure++) {
      world.builds.at(-1)!.fail('a bug of a generator');
      await world.passTime(failure < 4 ? 30_000 : 0);
    }
    const { length } = world.builds;
    const now = world.clock.now();
    request(world, { configs: ['Gateway/shop/front'] });
    await world.passTime(100);
    expect(buildTimes(world, origin).slice(length - 1)).toEqual([now + 100 - origin]);
    expect(world.builds.at(-1)).toMatchObject({ forced: true, configs: [config, 'Gateway/shop/front'] });
  });

  it('also rebuilds failed contexts of urgent endpoint changes', async () => {
    const world = await servingWorld({ debounceEndpoints: false });
    world.buildsAtOnce = false;
    request(world, { configs: [endpoints] });
    await world.settle();
    world.builds[1]!.fail('a bug of a generator');
    await world.passTime(1_000);
    expect(world.builds[2]).toMatchObject({ forced: true, configs: [endpoints] });
  });
});
