/**
 * Tests edge cases of both protocols, by number, with a source that the test controls. Numbers 15 to 20 (mesh changes) are in
 * mesh-edge-cases.test.ts, and 22 to 24 (authentication) in ads-server.test.ts and ads-security.test.ts.
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
  /** Opens a new TCP connection with one stream. */
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
    test('the server responds once to a request for clusters, and not to the ACK (rows 1 and 2)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      const response = await sidecar.next();
      expect(response).toMatchObject({
        typeUrl: clusterType,
        names: ['a', 'b', 'c'],
        nonce: expect.stringMatching(/./),
      });
      sidecar.ack(response);
      await eventuallyHolds(() =>
        expect(watchOf(world, clusterType)).toMatchObject({
          nonceAcked: response.nonce,
          versionAcked: response.version,
        }),
      );
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('the server counts and records a NACK without responding, and pushes the next change (rows 3 and 4)', async ({
      world,
    }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      const first = await sidecar.next();
      sidecar.ack(first);
      world.change([clusterType, 'a']);
      const secondResponse = await sidecar.next();
      sidecar.reject(secondResponse, 'no such filter');
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

    test('the server only counts a late ACK (row 5)', async ({ world }) => {
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

    test('the server responds to added names with only their resources (row 6)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b']);
      const { nonce } = await sidecar.next();
      sidecar.requestNames(endpointType, isDelta ? ['c'] : ['a', 'b', 'c'], nonce);
      expect(await sidecar.next()).toMatchObject({ names: ['c'], removed: [] });
      expect(watchOf(world, endpointType)).toMatchObject({ names: ['a', 'b', 'c'], nonceAcked: nonce });
    });

    test('the server does not respond to removed names, and stops pushing them (rows 7 and 8)', async ({ world }) => {
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

    test('the server responds in full to a client with the nonce of another server (row 9)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b'], '2026-01-01T00:00:00Z/7/3-9');
      expect((await sidecar.next()).names).toEqual(['a', 'b']);
      expect(world.observer.nonceExpired).not.toHaveBeenCalled();
    });

    test('the server sends endpoints again after their clusters if the endpoints were requested first (row 10)', async ({
      world,
    }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(endpointType, ['a', 'b']);
      const first = await sidecar.next();
      sidecar.ack(first, ['a', 'b']);
      sidecar.requestNames(clusterType, []);
      const clusters = await sidecar.next();
      const endpointsAgain = await sidecar.next();
      expect([first, clusters, endpointsAgain].map(({ typeUrl }) => typeUrl)).toEqual([
        endpointType,
        clusterType,
        endpointType,
      ]);
      expect(endpointsAgain.names).toEqual(['a', 'b']);
      sidecar.ack(clusters);
      sidecar.ack(endpointsAgain, ['a', 'b']);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('the server responds with only the name that is requested before the ACK (row 11)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(routeType, ['80']);
      const { nonce } = await sidecar.next();
      sidecar.requestNames(routeType, isDelta ? ['81'] : ['80', '81'], isDelta ? '' : nonce);
      expect((await sidecar.next()).names).toEqual(['81']);
    });

    test('the server ignores an unknown type and keeps the stream (row 12)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames('networking.istio.io/v1/VirtualService', []);
      expect(await sidecar.unexpected()).toEqual([]);
      sidecar.requestNames(clusterType, []);
      expect((await sidecar.next()).typeUrl).toBe(clusterType);
    });

    test('the server treats two streams of a node as two connections, and pushes to both (row 13)', async ({
      world,
    }) => {
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

    test('the server responds to a request while a push waits, and pushes afterwards (row 14)', async ({ world }) => {
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

    test('the server does not push unchanged resources (row 18)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      sidecar.ack(await sidecar.next());
      world.push(clusterType);
      world.push();
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('the server omits removed resources, and names them in delta (row 20)', async ({ world }) => {
      const sidecar = world.sidecar();
      sidecar.requestNames(clusterType, []);
      sidecar.ack(await sidecar.next());
      await eventuallyHolds(() => expect(watchOf(world, clusterType)?.nonceAcked).not.toBe(''));
      world.source.remove(clusterType, 'b');
      world.push(clusterType);
      expect(await sidecar.next()).toMatchObject(isDelta ? { names: [], removed: ['b'] } : { names: ['a', 'c'] });
    });

    test('the server ignores a wildcard that is subscribed and unsubscribed in the same request (row 21)', async ({
      world,
    }) => {
      const sidecar = world.sidecar();
      sidecar.drop(clusterType, isDelta ? ['*'] : [''], isDelta ? ['*'] : []);
      world.change([clusterType, 'a']);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('the server does not delay other clients because of one that never reads, and queues one response for it (row 25)', async ({
      world,
    }) => {
      world.source.set(clusterType, 'a', 3_000_000);
      const stalledSidecar = world.sidecar();
      stalledSidecar.requestNames(clusterType, []);
      await stalledSidecar.next();
      stalledSidecar.stopReading();
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
      stalledSidecar.cancel();
    });
  });
}
