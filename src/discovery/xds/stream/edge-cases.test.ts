/**
 * Rows of spec/discovery.md §7.6 in both protocols, with a source that the test controls. Rows 15 to 20 (mesh changes) are in
 * mesh-edge-cases.test.ts, 22 to 24 (authentication) in ads-server.test.ts and ads-security.test.ts.
 */

import { test as base, describe, expect, vi } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient } from '../../../../test/ads-client.ts';
import { deltaSidecar, type ProtocolSidecar, sotwSidecar } from '../../../../test/ads-sidecar.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import { type AdsServer, createAdsServer } from '../ads-server.ts';

const node = { id: 'sidecar~10.0.0.1~a.b~b.svc' };

interface World {
  readonly source: ScriptedSource;
  readonly server: AdsServer;
  readonly observer: {
    readonly responseRejected: ReturnType<typeof vi.fn>;
    readonly nonceExpired: ReturnType<typeof vi.fn>;
    readonly responseSent: ReturnType<typeof vi.fn>;
  };
  /** New TCP connection with one stream. */
  sidecar(): ProtocolSidecar;
  /** Changes and pushes resources. */
  change(...resources: readonly (readonly [string, string])[]): void;
  push(...typeUrls: string[]): void;
}

const protocols = ['state of the world', 'delta'] as const;

for (const protocol of protocols) {
  const test = base.extend<{ world: World }>({
    world: async ({ task: _ }, use) => {
      const endings: (() => void)[] = [];
      const source = new ScriptedSource();
      for (const type of [clusterType, endpointType]) for (const name of ['a', 'b', 'c']) source.set(type, name);
      for (const name of ['80', '81']) source.set(routeType, name);
      source.set(listenerType, 'l');
      const observer = { responseRejected: vi.fn(), nonceExpired: vi.fn(), responseSent: vi.fn() };
      const server = createAdsServer({ source, observer, logger: silentLogger, limits: { ackTimeoutMs: 60_000 } });
      const { port } = await server.listen('127.0.0.1:0');
      endings.push(() => server.close());
      const push = (...typeUrls: string[]): void => server.push(source.change(...typeUrls));
      await use({
        source,
        server,
        observer,
        push,
        change(...resources) {
          for (const [typeUrl, name] of resources) source.set(typeUrl, name);
          push(...new Set(resources.map(([typeUrl]) => typeUrl)));
        },
        sidecar() {
          const client = new AdsTestClient(port);
          endings.unshift(() => client.close());
          return protocol === 'delta' ? deltaSidecar(client, node) : sotwSidecar(client, node);
        },
      });
      for (const end of endings) end();
    },
  });
  const isDelta = protocol === 'delta';
  const watchOf = (world: World, typeUrl: string) =>
    world.server.connections()[0]?.watches.find((watch) => watch.typeUrl === typeUrl);

  describe(protocol, () => {
    test('rows 1 and 2: the server responds once to a request for clusters, and not to the ACK', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      const seen = await sidecar.next();
      expect(seen).toMatchObject({ typeUrl: clusterType, names: ['a', 'b', 'c'], nonce: expect.stringMatching(/./) });
      sidecar.ack(seen);
      await eventuallyHolds(() =>
        expect(watchOf(world, clusterType)).toMatchObject({ nonceAcked: seen.nonce, versionAcked: seen.version }),
      );
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('rows 3 and 4: the server counts and records a NACK without a response, and pushes the next change', async ({
      world,
    }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      const first = await sidecar.next();
      sidecar.ack(first);
      world.change([clusterType, 'a']);
      const second = await sidecar.next();
      sidecar.reject(second, 'no such filter');
      await eventuallyHolds(() =>
        expect(world.observer.responseRejected.mock.calls).toEqual([[clusterType, node.id, 'no such filter']]),
      );
      expect(await sidecar.unexpected()).toEqual([]);
      expect(world.observer.responseRejected).toHaveBeenCalledOnce();
      expect(watchOf(world, clusterType)).toMatchObject({ lastError: 'no such filter', nonceAcked: first.nonce });
      world.change([clusterType, 'a']);
      const third = await sidecar.next();
      expect(third.names).toContain('a');
      sidecar.ack(third);
      await eventuallyHolds(() =>
        expect(watchOf(world, clusterType)).toMatchObject({ lastError: '', nonceAcked: third.nonce }),
      );
    });

    test('row 5: the server only counts a late ACK', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a']);
      const first = await sidecar.next();
      sidecar.ack(first, ['a']);
      world.change([endpointType, 'a']);
      await sidecar.next();
      sidecar.ack(first, ['a']);
      await eventuallyHolds(() => expect(world.observer.nonceExpired.mock.calls).toEqual([[endpointType, node.id]]));
      expect(await sidecar.unexpected()).toEqual([]);
      expect(world.observer.nonceExpired).toHaveBeenCalledOnce();
      expect(watchOf(world, endpointType)).toMatchObject({ nonceAcked: first.nonce });
    });

    test('row 6: the server responds to added names with their resources only', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b']);
      const { nonce } = await sidecar.next();
      sidecar.requestNames(endpointType, isDelta ? ['c'] : ['a', 'b', 'c'], nonce);
      expect(await sidecar.next()).toMatchObject({ names: ['c'], removed: [] });
      expect(watchOf(world, endpointType)).toMatchObject({ names: ['a', 'b', 'c'], nonceAcked: nonce });
    });

    test('rows 7 and 8: the server does not respond to removed names, and no longer pushes them', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b']);
      const { nonce } = await sidecar.next();
      sidecar.drop(endpointType, ['a'], ['b'], nonce);
      await eventuallyHolds(() => expect(watchOf(world, endpointType)?.names).toEqual(['a']));
      world.change([endpointType, 'b']);
      expect(await sidecar.unexpected()).toEqual([]);
      sidecar.drop(endpointType, [], ['a'], nonce);
      await eventuallyHolds(() => expect(watchOf(world, endpointType)).toBeUndefined());
      world.change([endpointType, 'a']);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('row 9: the server responds in full to a client with a nonce of another server', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b'], '2026-01-01T00:00:00Z/7/3-9');
      expect((await sidecar.next()).names).toEqual(['a', 'b']);
      expect(world.observer.nonceExpired).not.toHaveBeenCalled();
    });

    test('row 10: the server sends endpoints again after their clusters if they were requested first', async ({
      world,
    }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b']);
      const first = await sidecar.next();
      sidecar.ack(first, ['a', 'b']);
      sidecar.requestNames(clusterType, []);
      const clusters = await sidecar.next();
      const again = await sidecar.next();
      expect([first, clusters, again].map(({ typeUrl }) => typeUrl)).toEqual([endpointType, clusterType, endpointType]);
      expect(again.names).toEqual(['a', 'b']);
      sidecar.ack(clusters);
      sidecar.ack(again, ['a', 'b']);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('row 11: the server responds with a single name that is requested before the ACK', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(routeType, ['80']);
      const { nonce } = await sidecar.next();
      sidecar.requestNames(routeType, isDelta ? ['81'] : ['80', '81'], isDelta ? '' : nonce);
      expect((await sidecar.next()).names).toEqual(['81']);
    });

    test('row 12: the server ignores an unknown type and keeps the stream', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames('networking.istio.io/v1/VirtualService', []);
      expect(await sidecar.unexpected()).toEqual([]);
      sidecar.requestNames(clusterType, []);
      expect((await sidecar.next()).typeUrl).toBe(clusterType);
    });

    test('row 13: the server treats two streams of a node as two connections and pushes to both', async ({ world }) => {
      const sidecars = [world.sidecar(), world.sidecar()];
      for (const sidecar of sidecars) {
        sidecar.requestNames(clusterType, []);
        sidecar.ack(await sidecar.next());
      }
      await eventuallyHolds(() =>
        expect(world.server.connections().every(({ watches }) => watches[0]?.nonceAcked !== '')).toBe(true),
      );
      world.change([clusterType, 'a']);
      for (const sidecar of sidecars) expect((await sidecar.next()).names).toContain('a');
      expect(new Set(world.server.connections().map(({ id }) => id)).size).toBe(2);
    });

    test('row 14: the server responds to a request while a push waits, and pushes afterwards', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      const clusters = await sidecar.next();
      world.change([clusterType, 'a']);
      // Waits for the ACK of the first response.
      sidecar.requestNames(listenerType, []);
      expect((await sidecar.next()).typeUrl).toBe(listenerType);
      sidecar.ack(clusters);
      expect(await sidecar.next()).toMatchObject({ typeUrl: clusterType });
    });

    test('row 18: the server does not push unchanged resources', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      sidecar.ack(await sidecar.next());
      world.push(clusterType);
      world.push();
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('row 20: the server omits removed resources, and names them in delta', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      sidecar.ack(await sidecar.next());
      await eventuallyHolds(() => expect(watchOf(world, clusterType)?.nonceAcked).not.toBe(''));
      world.source.remove(clusterType, 'b');
      world.push(clusterType);
      expect(await sidecar.next()).toMatchObject(isDelta ? { names: [], removed: ['b'] } : { names: ['a', 'c'] });
    });

    test('row 21: the server ignores a wildcard that is subscribed and unsubscribed at once', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.drop(clusterType, isDelta ? ['*'] : [''], isDelta ? ['*'] : []);
      world.change([clusterType, 'a']);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('row 25: the server does not delay other clients for one that never reads, and queues one response for it', async ({
      world,
    }) => {
      world.source.set(clusterType, 'a', 3_000_000);
      const stuck = world.sidecar();
      stuck.requestNames(clusterType, []);
      await stuck.next();
      stuck.stopReading();
      const otherSidecars = Array.from({ length: 20 }, () => world.sidecar());
      for (const other of otherSidecars) {
        other.requestNames(clusterType, []);
        other.ack(await other.next());
      }
      world.observer.responseSent.mockClear();
      const bytesBefore = process.memoryUsage().arrayBuffers;
      for (let round = 0; round < 5; round++) {
        world.source.set(clusterType, 'a', 3_000_000);
        world.push();
        for (const other of otherSidecars) other.ack(await other.next());
      }
      // Nothing is sent to the client without an ACK.
      expect(world.observer.responseSent).toHaveBeenCalledTimes(5 * otherSidecars.length);
      expect(process.memoryUsage().arrayBuffers - bytesBefore).toBeLessThan(600_000_000);
      stuck.cancel();
    });
  });
}
