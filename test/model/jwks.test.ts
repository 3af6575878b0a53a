/** Keys of token issuers, fetched by the statecharts (machines/discovery/jwks/{jwks,key-set}.machine.ts). */
import { describe, expect, it } from 'vitest';
import type { KeySource } from '../../machines/discovery/jwks/jwks.machine.ts';
import { maxStartsAtATime, selectStarts } from '../../machines/discovery/jwks/key-set-starts.ts';
import { DiscoveryWorld, readingOf } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const minuteMs = 60_000;
const refreshMs = 20 * minuteMs;
const servingState = 'active.operating.serving';
const shopKey = 'RequestAuthentication/shop/jwt';
const otherKey = 'RequestAuthentication/other/jwt';
const google: KeySource = { source: 'https://google.test/keys', timeoutMs: 5_000, users: [shopKey] };
const azure: KeySource = { source: 'https://azure.test/keys', timeoutMs: 5_000, users: [shopKey, otherKey] };
const readingOfChange = (key: string) => readingOf([{ key, event: 'update' }]);

eachWorldFollowsTheDiagrams(['jwks', 'key-set'], ['sources', 'jwks']);

/** The times at which an issuer was queried, relative to the first. */
function requestedAt(world: DiscoveryWorld, source: string): number[] {
  const times = world.keyRequests.flatMap((one) => (one.source === source ? [one.at] : []));
  return times.map((time) => time - times[0]!);
}

const pushedConfigs = (world: DiscoveryWorld): unknown[] => world.events('push.request').map(({ configs }) => configs);

describe('the JWT keys at start', () => {
  it('are fetched before any client is served', async () => {
    const world = new DiscoveryWorld({}, { keySources: [google, azure], buildsAtOnce: true });
    world.issuers = { [google.source]: 'g1', [azure.source]: 'a1' };
    await world.settle();
    expect(world.state()).toBe(servingState);
    expect(world.events('jwks.synced')).toEqual([{ type: 'jwks.synced', sources: 2, unresponsive: 0 }]);
    // The first context contains the keys, so no push is needed.
    await world.passTime(1_000);
    expect(pushedConfigs(world)).toEqual([]);
  });

  it('delay the start for an unresponsive issuer up to a limit', async () => {
    const world = new DiscoveryWorld({}, { keySources: [google, azure], issuers: { [azure.source]: 'a1' } });
    await world.passTime(4_999);
    expect(world.state()).toBe('active.operating.fetching issuer keys');
    await world.passTime(1);
    expect(world.state()).toBe(servingState);
    expect(world.events('jwks.synced')).toMatchObject([{ sources: 2, unresponsive: 1 }]);
  });

  it('are requested three times, 1 s apart, from a failing issuer, and then again after 1 min', async () => {
    const world = new DiscoveryWorld({}, { keySources: [google], issuers: { [google.source]: new Error('no') } });
    await world.passTime(2_000);
    expect(world.state()).toBe(servingState);
    expect(world.events('key-set.failed')).toEqual([
      { type: 'key-set.failed', source: google.source, version: '', reason: 'no' },
    ]);
    await world.passTime(minuteMs);
    expect(requestedAt(world, google.source)).toEqual([0, 1_000, 2_000, 62_000]);
  });

  it('do not delay the start if no object needs them', async () => {
    const world = await DiscoveryWorld.startServing();
    expect(world.events('jwks.synced')).toMatchObject([{ sources: 0 }]);
  });

  it('fail the start with a reason if an internal error prevents reading objects', async () => {
    const world = new DiscoveryWorld({}, { keySources: new Error('a bug') });
    await world.settle();
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: ['keys of issuers: a bug'] });
    expect(world.pendingWork()).toEqual([]);
  });
});

describe('many issuers in one namespace', () => {
  const mallory = 'RequestAuthentication/mallory/jwt';
  const silentSources = Array.from(
    { length: 60 },
    (_, i): KeySource => ({ source: `https://mallory.test/${i}`, timeoutMs: 5_000, users: [mallory] }),
  );

  it('occupy two slots while none responds, and issuers of other namespaces are queried immediately', async () => {
    const world = new DiscoveryWorld(
      {},
      { keySources: [...silentSources, google], issuers: { [google.source]: 'g1' } },
    );
    await world.passTime(0);
    expect(world.keyRequests.map(({ source }) => source)).toEqual([
      silentSources[0]!.source,
      google.source,
      silentSources[1]!.source,
    ]);
    // The actors of the last issuers start a few milliseconds later.
    await world.passTime(5_010);
    expect(world.state()).toBe(servingState);
    expect(world.events('jwks.synced')).toMatchObject([{ sources: 61, unresponsive: 60 }]);
  });

  it('are all queried when they respond, and the slots of deleted objects are released', async () => {
    const world = new DiscoveryWorld({}, { keySources: silentSources });
    await world.passTime(5_000);
    expect(world.keyRequests).toHaveLength(2);
    world.keySources = silentSources.slice(2);
    for (const { source } of silentSources) world.issuers[source] = 'k';
    await world.changeDirectory(readingOfChange(mallory));
    await world.passTime(1_000);
    expect(new Set(world.keyRequests.map(({ source }) => source)).size).toBe(60);
  });
});

describe('actors of many issuers', () => {
  const sourcesOf = (namespace: string, count: number) =>
    Array.from({ length: count }, (_, i): KeySource => {
      const source = `https://${namespace}.test/${i}`;
      return { source, timeoutMs: 5_000, users: [`RequestAuthentication/${namespace}/jwt`] };
    });
  const countStarted = (world: DiscoveryWorld) =>
    world.records.filter((record) => record.kind === 'spawn' && /^key-set-\d+$/.test(record.actor)).length;

  it('start a few at a time, both at start and later', async () => {
    const world = new DiscoveryWorld({}, { keySources: sourcesOf('mallory', 100) });
    await world.passTime(0);
    expect(countStarted(world)).toBe(maxStartsAtATime);
    await world.passTime(1);
    expect(countStarted(world)).toBe(2 * maxStartsAtATime);
    await world.passTime(5_010);
    expect(world.state()).toBe(servingState);
    expect(countStarted(world)).toBe(100);
    world.keySources = sourcesOf('other', 100);
    await world.changeDirectory(readingOfChange('RequestAuthentication/other/jwt'));
    expect(countStarted(world)).toBe(100 + maxStartsAtATime);
    await world.passTime(10);
    expect(countStarted(world)).toBe(200);
  });

  it('start in rotation between namespaces', () => {
    const isStarted = false;
    const sources = [...sourcesOf('mallory', 100), ...sourcesOf('shop', 2)].map((one) => ({ ...one, isStarted }));
    const starts = selectStarts(sources).map(({ source }) => source);
    expect(starts).toHaveLength(maxStartsAtATime);
    expect(starts.slice(0, 4)).toEqual(
      ['mallory', 'shop', 'mallory', 'shop'].map((one, i) => `https://${one}.test/${i >> 1}`),
    );
    expect(selectStarts(sources.map((one) => ({ ...one, isStarted: true })))).toEqual([]);
  });
});

describe('the JWT keys while serving', () => {
  const withGoogle = async (): Promise<DiscoveryWorld> => {
    const world = new DiscoveryWorld({}, { keySources: [google], issuers: { [google.source]: 'g1' } });
    await world.settle();
    expect(world.state()).toBe(servingState);
    return world;
  };

  it('are fetched every 20 min, and only changes are reported', async () => {
    const world = await withGoogle();
    await world.passTime(refreshMs);
    expect(pushedConfigs(world)).toEqual([]);
    world.issuers[google.source] = 'g2';
    await world.passTime(refreshMs);
    expect(pushedConfigs(world)).toEqual([[shopKey]]);
    expect(requestedAt(world, google.source)).toEqual([0, refreshMs, 2 * refreshMs]);
    expect(world.events('key-set.fetched').map(({ version }) => version)).toEqual(['g1', 'g2']);
  });

  it('are requested from a failing issuer after 1, 2, 4 min up to 1 h until it responds', async () => {
    const world = await withGoogle();
    world.issuers[google.source] = new Error('503');
    await world.passTime(refreshMs + 5 * 60 * minuteMs);
    const times = requestedAt(world, google.source).slice(1);
    // The first of every three attempts.
    const pauses = times.filter((_, index) => index % 3 === 0).map((at, index, all) => at - (all[index - 1] ?? 0));
    const seconds = [...pauses.slice(1, 8)].map((ms) => Math.round((ms - 2_000) / 1_000));
    expect(seconds).toEqual([60, 120, 240, 480, 960, 1_920, 3_600]);
    expect(world.events('key-set.failed').every(({ version }) => version === 'g1')).toBe(true);
    expect(pushedConfigs(world)).toEqual([]);
    world.issuers[google.source] = 'g2';
    await world.passTime(61 * minuteMs);
    expect(pushedConfigs(world)).toEqual([[shopKey]]);
    const requestsBefore = world.keyRequests.length;
    await world.passTime(refreshMs);
    expect(world.keyRequests.length - requestsBefore).toBe(1);
  });

  it('delay an object with a new issuer until they are fetched', async () => {
    const world = await withGoogle();
    world.keySources = [google, azure];
    world.issuers[azure.source] = new Error('not yet');
    await world.changeDirectory(readingOfChange(otherKey));
    expect(pushedConfigs(world)).toEqual([]);
    world.issuers[azure.source] = 'a1';
    await world.passTime(1_000);
    expect(pushedConfigs(world)).toEqual([[otherKey, shopKey]]);
  });

  it('delay an object for 5 s if the issuer does not respond', async () => {
    const world = await withGoogle();
    world.keySources = [google, azure];
    await world.changeDirectory(readingOfChange(otherKey));
    await world.passTime(4_999);
    expect(pushedConfigs(world)).toEqual([]);
    await world.passTime(1);
    expect(pushedConfigs(world)).toEqual([[otherKey]]);
  });

  it('delay no objects without new issuers, and are no longer fetched without objects', async () => {
    const world = await withGoogle();
    world.keySources = [];
    await world.changeDirectory(readingOfChange(shopKey));
    expect(pushedConfigs(world)).toEqual([[shopKey]]);
    await world.passTime(3 * refreshMs);
    expect(requestedAt(world, google.source)).toEqual([0]);
    world.keySources = [google];
    await world.changeDirectory(readingOfChange(shopKey));
    expect(requestedAt(world, google.source)).toHaveLength(2);
  });

  it('do not delay an object because of the issuers of other objects', async () => {
    const world = await withGoogle();
    const ownSource = { ...azure, users: [otherKey] };
    world.keySources = [google, ownSource];
    await world.changeDirectory(
      readingOf([
        { key: otherKey, event: 'update' },
        { key: shopKey, event: 'update' },
      ]),
    );
    expect(pushedConfigs(world)).toEqual([[shopKey]]);
    // A third object, which changes during the wait and has no issuer, is not delayed either.
    const third = 'RequestAuthentication/third/jwt';
    await world.changeDirectory(readingOfChange(third));
    expect(pushedConfigs(world)).toEqual([[shopKey], [third]]);
    await world.passTime(5_000);
    expect(pushedConfigs(world)).toEqual([[shopKey], [third], [otherKey]]);
  });

  it('do not delay objects because of another object that changes continuously', async () => {
    const world = await withGoogle();
    world.keySources = [google, { ...azure, users: [otherKey] }];
    await world.changeDirectory(readingOfChange(otherKey));
    for (let second = 0; second < 4; second++) {
      await world.passTime(1_000);
      await world.changeDirectory(readingOfChange(shopKey));
    }
    expect(pushedConfigs(world)).not.toContainEqual([otherKey]);
    await world.passTime(1_000);
    expect(pushedConfigs(world).at(-1)).toEqual([otherKey]);
  });

  it('delay an object that changes during a wait no longer than the first object', async () => {
    const world = await withGoogle();
    world.keySources = [google, azure];
    await world.changeDirectory(readingOfChange(otherKey));
    await world.changeDirectory(readingOfChange(shopKey));
    await world.passTime(4_000);
    expect(pushedConfigs(world)).toEqual([]);
    await world.passTime(1_000);
    // Both objects wait for the unresponsive issuer.
    expect(pushedConfigs(world)).toEqual([[otherKey, shopKey]]);
  });

  it('do not delay objects if the list of key sets fails', async () => {
    const world = await withGoogle();
    world.keySources = new Error('a bug');
    await world.changeDirectory(readingOfChange(shopKey));
    expect(pushedConfigs(world)).toEqual([[shopKey]]);
    expect(world.state()).toBe(servingState);
  });

  it('do not delay objects of other kinds', async () => {
    const world = await withGoogle();
    world.keySources = [google, azure];
    const policy = 'AuthorizationPolicy/shop/deny';
    await world.changeDirectory(
      readingOf([
        { key: otherKey, event: 'add' },
        { key: policy, event: 'add' },
      ]),
    );
    expect(pushedConfigs(world)).toEqual([[policy]]);
  });

  it('are no longer fetched during a stop', async () => {
    const world = await withGoogle();
    world.signal();
    await world.settle();
    expect(world.pendingWork()).toEqual([]);
  });
});
