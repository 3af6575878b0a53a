/** Roots that the mesh configuration lists by address, fetched by the statecharts (machines/discovery/bundles/trust-bundle{,s}.machine.ts). */
import { describe, expect, it } from 'vitest';
import type { BundleResponse, TrustBundleInput } from '../../machines/discovery/bundles/trust-bundle.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const servingState = 'active.operating.serving';
const spireInput: TrustBundleInput = { endpoint: 'https://spire.test/', trustDomains: ['shop.test'] };
const otherInput: TrustBundleInput = { endpoint: 'https://other.test/', trustDomains: ['old.test'] };

const bundle = (version: string, sequence: number | null = null, refreshMs: number | null = null): BundleResponse => ({
  outcome: 'fetched',
  version,
  sequence,
  refreshMs,
});
const failedResponse = (reason = 'no'): BundleResponse => ({ outcome: 'failed', reason });

eachWorldFollowsTheDiagrams(['trust-bundles', 'trust-bundle'], ['endpoints', 'fetching', 'recalling']);

/** The times at which an endpoint was queried, relative to the first. */
function requestedAt(world: DiscoveryWorld, { endpoint }: TrustBundleInput): number[] {
  const times = world.bundleRequests.flatMap((one) => (one.endpoint === endpoint ? [one.at] : []));
  return times.map((time) => time - times[0]!);
}

const createWorld = async (script: Partial<DiscoveryWorld>): Promise<DiscoveryWorld> => {
  const world = new DiscoveryWorld({}, { endpoints: [spireInput], ...script });
  await world.settle();
  expect(world.state()).toBe(servingState);
  return world;
};

const inForce = (world: DiscoveryWorld): string[] => world.adoptedBundles.map(({ version }) => version);

describe('trust bundles at start', () => {
  it('do not delay the start, and an unresponsive endpoint is queried once', async () => {
    const world = await createWorld({});
    await world.passTime(60 * minuteMs);
    // The timeout is in the effect: it reports a missing response.
    expect(requestedAt(world, spireInput)).toEqual([0]);
    expect(inForce(world)).toEqual([]);
  });

  it('still apply after a restart until the endpoint has responded', async () => {
    const world = await createWorld({ keptBundles: { [spireInput.endpoint]: bundle('kept', 7) } });
    expect(inForce(world)).toEqual(['kept']);
    expect(world.publishedCount).toBe(1);
    expect(requestedAt(world, spireInput)).toEqual([0]);
  });

  it('are ignored if they are stored but no longer valid, and the endpoint is queried', async () => {
    const world = await createWorld({
      keptBundles: { [spireInput.endpoint]: failedResponse('has ended') },
      bundles: { [spireInput.endpoint]: bundle('one') },
    });
    expect(inForce(world)).toEqual(['one']);
  });

  it('still exclude older bundles by the stored sequence number', async () => {
    const world = await createWorld({
      keptBundles: { [spireInput.endpoint]: bundle('kept', 7) },
      bundles: { [spireInput.endpoint]: bundle('replayed', 6) },
    });
    expect(inForce(world)).toEqual(['kept']);
    expect(world.events('trust-bundle.failed')).toMatchObject([
      { version: 'kept', reason: 'the bundle is older than the one in force: spiffe_sequence 6 after 7' },
    ]);
  });
});

describe('an endpoint that responds', () => {
  it('is queried every 5 min, and agents are notified only of changed roots', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one') } });
    await world.passTime(5 * minuteMs);
    expect(world.publishedCount).toBe(1);
    world.bundles[spireInput.endpoint] = bundle('two');
    await world.passTime(5 * minuteMs);
    expect(requestedAt(world, spireInput)).toEqual([0, 5 * minuteMs, 10 * minuteMs]);
    expect(inForce(world)).toEqual(['one', 'two']);
    expect(world.publishedCount).toBe(2);
  });

  it.each([
    [60 * secondMs, 60 * secondMs],
    [0, 30 * secondMs],
    [1, 30 * secondMs],
    [86_400 * secondMs, 60 * minuteMs],
    [Number.MAX_SAFE_INTEGER, 60 * minuteMs],
  ])('is queried, after a refresh hint of %i ms, every %i ms', async (hint, interval) => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one', null, hint) } });
    await world.passTime(interval - 1);
    expect(requestedAt(world, spireInput)).toEqual([0]);
    await world.passTime(1);
    expect(requestedAt(world, spireInput)).toEqual([0, interval]);
  });

  it('has an older bundle ignored, and a bundle with the same or no number accepted', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('five', 5) } });
    for (const next of [
      bundle('four', 4),
      bundle('also five', 5),
      bundle('uncounted'),
      bundle('one', 1),
      bundle('zero', 0),
    ]) {
      world.bundles[spireInput.endpoint] = next;
      await world.passTime(5 * minuteMs);
    }
    // A publisher without sequence numbers restarts the sequence.
    expect(inForce(world)).toEqual(['five', 'also five', 'uncounted', 'one']);
  });
});

describe('an endpoint that fails', () => {
  it('is queried after 5 s, 10 s, 20 s and so on up to 5 min if there is no bundle', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: failedResponse() } });
    await world.passTime(20 * minuteMs);
    const times = requestedAt(world, spireInput);
    const pauses = times.slice(1).map((at, index) => (at - times[index]!) / secondMs);
    expect(pauses.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
    expect(inForce(world)).toEqual([]);
  });

  it('keeps its last valid bundle, and is queried no more often than after a response', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one', 3, minuteMs) } });
    world.bundles[spireInput.endpoint] = failedResponse('huge');
    await world.passTime(10 * minuteMs);
    const times = requestedAt(world, spireInput);
    expect(times).toEqual(times.map((_, index) => index * minuteMs));
    expect(inForce(world)).toEqual(['one']);
    expect(world.events('trust-bundle.failed')[0]).toEqual({
      type: 'trust-bundle.failed',
      endpoint: spireInput.endpoint,
      version: 'one',
      reason: 'huge',
    });
    world.bundles[spireInput.endpoint] = bundle('two', 4);
    await world.passTime(minuteMs);
    expect(inForce(world)).toEqual(['one', 'two']);
  });

  it('is also queried again after an internal error', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: new Error('a bug') } });
    world.bundles[spireInput.endpoint] = bundle('one');
    await world.passTime(5 * secondMs);
    expect(inForce(world)).toEqual(['one']);
  });
});

describe('a changed mesh configuration', () => {
  it('causes queries of its new endpoints instead of removed ones', async () => {
    const world = await createWorld({
      bundles: { [spireInput.endpoint]: bundle('one'), [otherInput.endpoint]: bundle('o') },
    });
    world.endpoints = [otherInput];
    await world.changeSources(['fs://config']);
    expect(inForce(world)).toEqual(['one', 'o']);
    await world.passTime(60 * minuteMs);
    expect(requestedAt(world, spireInput)).toEqual([0]);
    expect(requestedAt(world, otherInput)).toHaveLength(13);
  });

  it('causes another query of an endpoint whose trust domains it changes', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one') } });
    world.endpoints = [{ ...spireInput, trustDomains: ['old.test'] }];
    await world.changeSources(['fs://config']);
    expect(world.bundleRequests.map(({ trustDomains }) => trustDomains)).toEqual([['shop.test'], ['old.test']]);
  });

  it('has no effect if an internal error prevents reading it', async () => {
    const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one') } });
    world.endpoints = new Error('a bug');
    await world.changeSources(['fs://config']);
    await world.passTime(5 * minuteMs);
    expect(requestedAt(world, spireInput)).toEqual([0, 5 * minuteMs]);
    expect(world.state()).toBe(servingState);
  });
});

it('a stop ends all queries', async () => {
  const world = await createWorld({ bundles: { [spireInput.endpoint]: bundle('one') } });
  world.signal();
  await world.settle();
  expect(world.pendingWork()).toEqual([]);
});
