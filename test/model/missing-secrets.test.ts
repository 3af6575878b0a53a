/** Missing secrets: Envoy would use clusters and listeners without them if they were reported as removed. */
import { afterEach, describe, expect, test } from 'vitest';
import { secretType } from '../../machines/discovery/xds/ads-types.ts';
import { RolloutClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  function createClient(): RolloutClient {
    const client = new RolloutClient(delta, { servesSecrets: true });
    client.source.set(secretType, 'one');
    return client;
  }

  test('missing secrets get no response until they exist, regardless of other secrets', () => {
    const client = createClient();
    client.request(secretType, ['missing']);
    expect(client.read()).toEqual([]);
    client.request(secretType, delta ? ['one'] : ['missing', 'one'], client.world.watch(secretType)?.nonceSent);
    const [sentResponse] = client.world.readAll();
    expect(shortTexts(sentResponse!)).toBe('Secret one');
    client.ack(sentResponse!, ['missing', 'one']);
    client.source.set(secretType, 'missing');
    client.world.push(secretType);
    expect(client.read()).toEqual(['Secret missing']);
  });

  test('missing secrets get no response even if the request contains an existing one', () => {
    const client = createClient();
    client.request(secretType, ['one', 'missing']);
    expect(client.read()).toEqual(['Secret one']);
  });

  test('secrets that were sent and then deleted are removed from a delta client, and cause no other response', () => {
    const client = createClient();
    client.request(secretType, ['one']);
    client.ack(client.world.read()!, ['one']);
    client.source.remove(secretType, 'one');
    client.source.set(secretType, 'other');
    client.world.push(secretType);
    expect(client.read()).toEqual(delta ? ['Secret -one'] : []);
  });
});
