/** Several sources of configuration below one controller (machines/discovery/config/config-controller.machine.ts). */
import { describe, expect, it } from 'vitest';
import type { ConfigChange } from '../../machines/discovery/protocol.ts';
import { DiscoveryWorld, readingOf } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

eachWorldFollowsTheDiagrams(['configuration', 'config-source', 'config-sources'], ['joining', 'reading']);

const [files, cluster] = ['fs://config', 'k8s://east'];
const syncingState = 'active.operating.syncing configuration';
const servingState = 'active.operating.serving';
const configChange: ConfigChange = { key: 'VirtualService/shop/cart', event: 'update' };

/** A control plane with a directory, and a cluster that has not been read. */
async function withSlowCluster(): Promise<DiscoveryWorld> {
  const world = new DiscoveryWorld({}, { sources: [files, cluster], unreadSources: [cluster] });
  await world.passTime(60_000);
  return world;
}

describe('config-controller', () => {
  it('waits for the first read of all sources, and reports pending sources', async () => {
    const world = await withSlowCluster();
    expect(world.state()).toBe(syncingState);
    expect(world.events('configs.pending').map(({ sources }) => sources)).toEqual([[files, cluster], [cluster]]);
    expect([world.joinedSources, world.events('configs.synced')]).toEqual([[], []]);
    await world.read(cluster);
    expect(world.state()).toBe(servingState);
    expect(world.joinedSources).toEqual([[files, cluster]]);
  });

  it('has an actor for each source, and joins all sources when one changes', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    expect(world.pendingWork()).toEqual(expect.arrayContaining(['config-source-1/watch', 'config-source-2/watch']));
    world.directory = readingOf([configChange]);
    world.sendFrom('config-source-2/watch', { type: 'source.changed', place: 'VirtualService/shop/cart' });
    await world.passTime(20);
    expect(world.joinedSources).toEqual([
      [files, cluster],
      [files, cluster],
    ]);
    expect(world.events('push.request')).toMatchObject([{ configs: [configChange.key] }]);
  });

  it('joins pending changes of one source in the same step in which it reports the result of the other', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    world.joinResult = readingOf([configChange]);
    for (const source of ['config-source-1/watch', 'config-source-2/watch'])
      world.sendFrom(source, { type: 'source.changed', place: '' });
    await world.passTime(20);
    expect(world.joinedSources).toHaveLength(3);
    expect(world.events('push.request')).toHaveLength(2);
  });

  it.each([
    ['is over', 200, 1],
    ['does not end', 10_000, 50],
  ])('requests one push if a burst of events %s', async (_, untilMs, everyMs) => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    world.joinResult = readingOf([configChange]);
    const event = { type: 'source.changed', place: 'x', isBurst: true } as const;
    world.sendFrom('config-source-1/watch', event);
    for (let ms = 0; untilMs > 200 && ms < untilMs - everyMs; ms += everyMs) {
      await world.passTime(everyMs);
      world.sendFrom('config-source-1/watch', event);
    }
    expect(world.events('push.request')).toHaveLength(0);
    await world.passTime(untilMs > 200 ? everyMs : untilMs);
    expect(world.events('push.request')).toHaveLength(1);
  });

  it('is not delayed if another source is unreadable, and reports the name of that source', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, cluster] });
    await world.settle();
    world.joinResult = readingOf([configChange]);
    world.directory = new Error('connection refused');
    world.sendFrom('config-source-2/watch', { type: 'source.changed', place: '' });
    await world.passTime(20);
    expect(world.events('configs.rejected')).toMatchObject([
      { problems: [{ place: { source: cluster }, message: 'connection refused' }] },
    ]);
    expect(world.joinedSources).toHaveLength(1);
    world.directory = readingOf([configChange]);
    world.sendFrom('config-source-1/watch', { type: 'source.changed', place: 'routes.yaml' });
    await world.passTime(20);
    expect(world.events('push.request')).toHaveLength(1);
  });

  it('retries a failed join with increasing delays, and reports the reason', async () => {
    const world = await DiscoveryWorld.startServing();
    world.joinResult = new Error('a bug of a translation');
    await world.changeDirectory(readingOf([configChange]));
    await world.passTime(6_999);
    expect(world.joinedSources).toHaveLength(1 + 3);
    expect(world.events('configs.rejected').at(-1)).toMatchObject({
      problems: [{ message: 'a bug of a translation' }],
    });
    world.joinResult = undefined;
    await world.passTime(1);
    expect(world.events('push.request')).toMatchObject([{ configs: [configChange.key] }]);
  });

  it('fails the start if a source is missing, but keeps running if a source is removed later', async () => {
    const missingReading = { outcome: 'missing', problems: [] } as const;
    const world = new DiscoveryWorld({}, { directory: { ...missingReading, problems: [] } });
    await world.settle();
    expect(world.output()?.exitCode).toBe(1);
    const runningWorld = await DiscoveryWorld.startServing();
    await runningWorld.changeDirectory({ ...missingReading, problems: [] });
    expect(runningWorld.state()).toBe(servingState);
  });
});

describe('sources that the mesh configuration adds and removes', () => {
  const [other, extraSource] = ['fs://other', 'fs://more'];
  const inForce = (world: DiscoveryWorld): string[] | undefined => world.joinedSources.at(-1);
  const moveSource = (world: DiscoveryWorld, source: number): void =>
    world.sendFrom(`config-source-${source}/watch`, { type: 'source.changed', place: 'x' });

  it('apply after they are read, and removed sources apply until then', async () => {
    const world = await DiscoveryWorld.startServing();
    world.unreadSources = [cluster];
    await world.changeSources([cluster]);
    expect(inForce(world)).toEqual([files]);
    expect(world.pendingWork()).toContain('config-source-1/watch');
    world.directory = readingOf([{ key: configChange.key, event: 'delete' }]);
    await world.read(cluster);
    expect(inForce(world)).toEqual([cluster]);
    expect(world.pendingWork()).not.toContain('config-source-1/watch');
    expect(world.events('push.request').at(-1)).toMatchObject({ configs: [configChange.key] });
    expect(world.state()).toBe(servingState);
  });

  it('do not delay other sources while a new or removed one is unreadable', async () => {
    const world = await DiscoveryWorld.startServing();
    world.unreadSources = [cluster];
    await world.changeSources([cluster, other]);
    expect(inForce(world)).toEqual([other, files]);
    expect(world.events('sources.pending')).toMatchObject([{ sources: [cluster, other] }]);
    const joinsBefore = world.joinedSources.length;
    moveSource(world, 1);
    await world.passTime(20);
    expect(world.joinedSources.slice(joinsBefore)).toEqual([[other, files]]);
    await world.passTime(3_600_000);
    expect(inForce(world)).toEqual([other, files]);
  });

  it('are awaited and reported while missing, and apply as soon as they exist', async () => {
    const world = await DiscoveryWorld.startServing();
    world.missingSources = [other];
    await world.changeSources([other]);
    expect(inForce(world)).toEqual([files]);
    world.missingSources = [];
    moveSource(world, 2);
    await world.passTime(20);
    expect(inForce(world)).toEqual([other]);
  });

  it('are handled if they return before their removal completes, or are removed before they are added', async () => {
    const world = await DiscoveryWorld.startServing();
    world.unreadSources = [cluster];
    await world.changeSources([cluster]);
    await world.changeSources([files]);
    expect(inForce(world)).toEqual([files]);
    expect(world.knownSources.at(-1)).toEqual([files]);
    expect(world.pendingWork()).toContain('config-source-1/watch');
    expect(world.pendingWork()).not.toContain('config-source-2/watch');
    await world.read(cluster);
    expect(inForce(world)).toEqual([files]);
  });

  it('apply in their new order immediately if only the order changes', async () => {
    const world = new DiscoveryWorld({}, { sources: [files, other] });
    await world.settle();
    await world.changeSources([other, files, extraSource]);
    expect(inForce(world)).toEqual([other, files, extraSource]);
    await world.changeSources([extraSource]);
    expect(inForce(world)).toEqual([extraSource]);
    expect(world.pendingWork().filter((name) => name.endsWith('/watch'))).toEqual(['config-source-3/watch']);
  });

  it('are kept if an address is invalid or the file becomes empty', async () => {
    const world = await DiscoveryWorld.startServing();
    await world.changeSources('fs:// names no directory');
    expect(world.events('configs.rejected').at(-1)).toMatchObject({
      problems: [{ message: 'fs:// names no directory' }],
    });
    await world.changeSources([]);
    expect(world.events('configs.rejected')).toHaveLength(2);
    expect([inForce(world), world.pendingWork().includes('config-source-1/watch')]).toEqual([[files], true]);
  });

  it('are added to a control plane without sources, and their objects are pushed', async () => {
    const world = new DiscoveryWorld({}, { sources: [] });
    await world.settle();
    expect(world.state()).toBe(servingState);
    world.directory = readingOf([configChange]);
    await world.changeSources([files]);
    expect(inForce(world)).toEqual([files]);
    expect(world.events('push.request').at(-1)).toMatchObject({ configs: [configChange.key] });
  });

  it('end the wait for a missing source at the start if they no longer contain it', async () => {
    const world = await withSlowCluster();
    await world.changeSources([files]);
    expect(world.state()).toBe(servingState);
    expect(world.joinedSources).toEqual([[files]]);
  });

  it('are joined again after a failed join', async () => {
    const world = await DiscoveryWorld.startServing();
    world.joinResult = new Error('a bug of a translation');
    await world.changeDirectory(readingOf([configChange]));
    world.joinResult = undefined;
    await world.changeSources([files, other]);
    expect(inForce(world)).toEqual([files, other]);
  });

  it('are listed when the mesh configuration changes, but not when networks change', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.networks = { outcome: 'valid', version: 'others' };
    world.sendFrom('mesh-networks/files', { type: 'files.changed', path: 'meshNetworks' });
    await world.passTime(100);
    expect(world.events('sources.list')).toHaveLength(1);
  });
});
