/** Several sources of configuration beneath one controller (machines/discovery/config-controller.machine.ts). */
import { describe, expect, it } from 'vitest';
import type { ConfigChange } from '../../machines/discovery/protocol.ts';
import { DiscoveryWorld, readingOf } from '../simulation/discovery-world.ts';

const [files, cluster] = ['fs://config', 'k8s://east'];
const waiting = 'at work.operating.syncing configuration';
const serving = 'at work.operating.serving';
const change: ConfigChange = { key: 'VirtualService/shop/cart', event: 'update' };

/** A control plane with a directory, and a cluster that has not been read. */
async function withSlowCluster(): Promise<DiscoveryWorld> {
  const world = new DiscoveryWorld({}, { sources: [files, cluster], unread: [cluster] });
  await world.pass(60_000);
  return world;
}

describe('config-controller', () => {
  it('waits for the first reading of every source, and says for which', async () => {
    const world = await withSlowCluster();
    expect(world.state()).toBe(waiting);
    expect(world.events('configs.awaited').map(({ sources }) => sources)).toEqual([[files, cluster], [cluster]]);
    expect([world.joins, world.events('configs.synced')]).toEqual([[], []]);
    await world.read(cluster);
    expect(world.state()).toBe(serving);
    expect(world.joins).toEqual([[files, cluster]]);
  });

  it('has an actor for each source, and puts all together when one of them changes', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    expect(world.running()).toEqual(expect.arrayContaining(['config-source-1/watch', 'config-source-2/watch']));
    world.directory = readingOf([change]);
    world.from('config-source-2/watch', { type: 'source.moved', place: 'VirtualService/shop/cart' });
    await world.pass(20);
    expect(world.joins).toEqual([
      [files, cluster],
      [files, cluster],
    ]);
    expect(world.events('push.request')).toMatchObject([{ configs: [change.key] }]);
  });

  it('is not held up by one source while another cannot be read, and names it', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    world.joined = readingOf([change]);
    world.directory = new Error('connection refused');
    world.from('config-source-2/watch', { type: 'source.moved', place: '' });
    await world.pass(20);
    expect(world.events('config.rejected')).toMatchObject([
      { problems: [{ place: { source: cluster }, message: 'connection refused' }] },
    ]);
    expect(world.joins).toHaveLength(1);
    world.directory = readingOf([change]);
    world.from('config-source-1/watch', { type: 'source.moved', place: 'routes.yaml' });
    await world.pass(20);
    expect(world.events('push.request')).toHaveLength(1);
  });

  it('tries again by itself what could not be put together, later each time, and says what is wrong', async () => {
    const world = await DiscoveryWorld.serving();
    world.joined = new Error('a bug of a translation');
    await world.changeDirectory(readingOf([change]));
    await world.pass(6_999);
    expect(world.joins).toHaveLength(1 + 3);
    expect(world.events('config.rejected').at(-1)).toMatchObject({ problems: [{ message: 'a bug of a translation' }] });
    world.joined = undefined;
    await world.pass(1);
    expect(world.events('push.request')).toMatchObject([{ configs: [change.key] }]);
  });

  it('follows other sources while it runs: nothing of those that went is left once those that came are read', async () => {
    const world = await DiscoveryWorld.serving();
    world.unread = [cluster];
    world.order('config-controller', { type: 'configs.load', sources: [cluster] });
    await world.settle();
    expect(world.running()).not.toContain('config-source-1/watch');
    expect(world.joins).toEqual([[files]]);
    world.directory = readingOf([{ key: change.key, event: 'delete' }]);
    await world.read(cluster);
    expect(world.joins).toEqual([[files], [cluster]]);
    expect(world.events('push.request')).toMatchObject([{ configs: [change.key] }]);
    expect(world.state()).toBe(serving);
  });

  it('ends the start when a source is not there, and only the start', async () => {
    const gone = { outcome: 'missing', problems: [] } as const;
    const world = new DiscoveryWorld({}, { directory: { ...gone, problems: [] } });
    await world.settle();
    expect(world.output()?.exitCode).toBe(1);
    const running = await DiscoveryWorld.serving();
    await running.changeDirectory({ ...gone, problems: [] });
    expect(running.state()).toBe(serving);
  });
});
