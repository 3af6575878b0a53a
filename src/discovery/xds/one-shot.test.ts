/** Sends debug commands as xDS requests. */
import { test as base, expect, vi } from 'vitest';
import { clusterType } from '../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient } from '../../../test/ads-client.ts';
import { ScriptedSource } from '../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { type AdsServer, createAdsServer } from './ads-server.ts';
import type { OneShot } from './one-shot.ts';
import { encodeValue } from './responses/encoding.ts';

const node = { id: 'sidecar~10.0.0.1~a.b~b.svc' };
const syncz = 'istio.io/debug/syncz';

const test = base.extend<{
  start: (oneShot: OneShot) => Promise<{ client: AdsTestClient; server: AdsServer; source: ScriptedSource }>;
}>({
  start: async ({ task: _ }, use) => {
    const endings: (() => void)[] = [];
    await use(async (oneShot) => {
      const source = new ScriptedSource();
      source.set(clusterType, 'a');
      const server = createAdsServer({ source, logger: silentLogger, oneShot });
      const { port } = await server.listen('127.0.0.1:0');
      const client = new AdsTestClient(port);
      endings.push(
        () => client.close(),
        () => server.close(),
      );
      return { client, server, source };
    });
    for (const end of endings) end();
  },
});

const respondWithNames: OneShot = ({ typeUrl, names }) => ({
  version: 'v',
  resources: [...names, 'more'].map((name) => encodeValue(typeUrl, Buffer.from(`about ${name}`), name)),
});

test('the xDS server responds to each debug request without watching its type', async ({ start }) => {
  const oneShot = vi.fn(respondWithNames);
  const { client, server, source } = await start(oneShot);
  const stream = client.sotw();
  const nonces = new Set<string>();
  for (let i = 0; i < 2; i++) {
    stream.send({ node, typeUrl: syncz, resourceNames: ['x'] });
    const { typeUrl, resources, nonce } = await stream.next();
    expect(typeUrl).toBe(syncz);
    expect(resources.map(({ value }) => Buffer.from(value).toString())).toEqual(['about x', 'about more']);
    nonces.add(nonce);
    // The ACK is not a request.
    stream.send({ typeUrl: syncz, resourceNames: ['x'], responseNonce: nonce });
  }
  expect(nonces.size).toBe(2);
  server.push(source.change());
  expect(await stream.unexpected()).toEqual([]);
  expect(server.connections()[0]!.watches).toEqual([]);
  const commonFields = { typeUrl: syncz, names: ['x'], identities: [], isSecure: false };
  expect(oneShot.mock.calls.map(([question]) => question)).toEqual([
    { ...commonFields, node: expect.objectContaining(node) },
    { ...commonFields, node: expect.objectContaining(node) },
  ]);
});

test('the xDS server responds to a delta debug request', async ({ start }) => {
  const { client } = await start(respondWithNames);
  const stream = client.delta();
  stream.send({ node, typeUrl: 'istio.io/debug', resourceNamesSubscribe: ['edsz'] });
  expect((await stream.next()).resources.map(({ name }) => name)).toEqual(['edsz', 'more']);
});

test('the xDS server responds to debug requests whose nonce is the current time', async ({ start }) => {
  const { client } = await start(respondWithNames);
  const stream = client.sotw();
  for (const second of [1, 2]) {
    const responseNonce = `2026-11-29 19:00:0${second}.123456789 +0000 UTC m=+0.067890123`;
    stream.send({ node, typeUrl: syncz, resourceNames: ['x'], responseNonce });
    expect((await stream.next()).typeUrl).toBe(syncz);
  }
});

test('the xDS server responds to a debug request with the nonce of another stream, and treats a nonce of its own stream as an ACK', async ({
  start,
}) => {
  const { client } = await start(respondWithNames);
  const first = client.sotw();
  first.send({ node, typeUrl: syncz });
  const { nonce } = await first.next();
  first.send({ typeUrl: syncz, responseNonce: nonce });
  expect(await first.unexpected()).toEqual([]);
  const secondStream = client.sotw();
  secondStream.send({ node, typeUrl: syncz, responseNonce: nonce });
  expect((await secondStream.next()).typeUrl).toBe(syncz);
});

test('the xDS server ends the stream if a client lacks permission for a debug request', async ({ start }) => {
  const { client } = await start(() => ({ code: 'PERMISSION_DENIED', reason: 'not for you' }));
  const stream = client.sotw();
  stream.send({ node, typeUrl: syncz });
  expect(await stream.ended).toMatchObject({ code: 7, details: 'not for you' });
});

const failing: OneShot = () => {
  throw new Error('broken');
};

test.for<[string, OneShot]>([
  ['of an unknown type', () => undefined],
  ['that fails', failing],
])('the xDS server keeps the stream and ignores a debug request %s', async ([, oneShot], { start }) => {
  const { client } = await start(oneShot);
  const stream = client.sotw();
  stream.send({ node, typeUrl: syncz });
  stream.send({ typeUrl: clusterType });
  expect((await stream.next()).typeUrl).toBe(clusterType);
});
