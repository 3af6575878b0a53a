/** Tests a client that sends requests without reading responses. Its requests stay in the network, and its stream is closed after a limit. */

import { constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { test as base, expect, onTestFinished, vi } from 'vitest';
import { clusterType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, givenNode, giveServers } from '../../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { UnreadStream } from '../../../../test/harness/unread-stream.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { ResourceSource } from '../resource-source.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const name = (i: number): string => `${i}`.padEnd(1_000, 'x');
const manyNames = Array.from({ length: 100 }, (_, i) => name(i));

const sotw = (request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array =>
  toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request));

/** Opens a stream that requests listeners and clusters of several megabytes, and reads nothing. */
function openUnreadStream(port: number): UnreadStream {
  const stream = new UnreadStream(port);
  onTestFinished(() => stream.close());
  stream.send(sotw({ node: givenNode, typeUrl: clusterType }));
  stream.send(sotw({ typeUrl: listenerType }));
  return stream;
}

test('the xDS server pauses reading requests while a response waits, and reads all of them when the client reads again', async ({
  start,
}) => {
  const requestReceived = vi.fn();
  const { source, port } = await start({ observer: { requestReceived } });
  source.set(clusterType, 'a', 3_000_000);
  source.set(listenerType, name(1));
  const stream = openUnreadStream(port);
  for (let i = 0; i < 20; i++) stream.send(sotw({ typeUrl: listenerType, resourceNames: manyNames }));
  await sleep(500);
  // The server has received the two processed requests, and possibly the next one.
  expect(requestReceived.mock.calls.length).toBeLessThanOrEqual(3);
  stream.read();
  await eventuallyHolds(() => expect(requestReceived).toHaveBeenCalledTimes(22));
});

test('the xDS server closes the stream of a client that does not read for too long', async ({ start }) => {
  const streamClosed = vi.fn();
  const { source, server, port } = await start({ observer: { streamClosed }, limits: { congestionMs: 300 } });
  source.set(clusterType, 'a', 3_000_000);
  source.set(listenerType, 'l');
  const stream = openUnreadStream(port);
  await eventuallyHolds(() =>
    expect(server.connections()[0]?.state).toBe(
      'streaming.delivery.congested | streaming.clusters.usable | streaming.removals.none',
    ),
  );
  await eventuallyHolds(() => expect(server.connections()).toEqual([]));
  expect(streamClosed).toHaveBeenCalledWith(expect.anything(), 'RESOURCE_EXHAUSTED');
  // The HTTP/2 stream is reset too, which discards unread data. A silent connection is closed after 30 s.
  expect(await Promise.race([stream.reset, sleep(20_000, 'not cut')])).toBe(constants.NGHTTP2_CANCEL);
});

/** Opens streams whose nodes are rejected while megabytes are unread, with and without a waiting response. */
async function refusedWhileUnread(start: GiveServer) {
  const scripted = new ScriptedSource();
  scripted.set(clusterType, 'a', 3_000_000);
  scripted.set(listenerType, 'l');
  const refusals: (() => void)[] = [];
  const source: ResourceSource = {
    openNode: (node, onRejected) => {
      refusals.push(() => onRejected?.({ code: 'PERMISSION_DENIED', reason: 'no such group' }));
      return scripted.openNode(node);
    },
  };
  const { server, port } = await start({ source });
  const congested = openUnreadStream(port);
  const behindNothing = new UnreadStream(port);
  onTestFinished(() => behindNothing.close());
  behindNothing.send(sotw({ node: givenNode, typeUrl: clusterType }));
  await eventuallyHolds(() =>
    expect(server.connections().map(({ state }) => state)).toEqual(
      expect.arrayContaining([
        'streaming.delivery.congested | streaming.clusters.usable | streaming.removals.none',
        'streaming.delivery.up to date | streaming.clusters.usable | streaming.removals.none',
      ]),
    ),
  );
  await eventuallyHolds(() => expect(scripted.nodes).toHaveLength(2));
  for (const refuse of refusals) refuse();
  return { server, congested, behindNothing };
}

test('the xDS server resets an ended stream if the client does not read earlier responses', async ({ start }) => {
  const { server, congested, behindNothing } = await refusedWhileUnread(start);
  for (const { reset } of [congested, behindNothing]) {
    expect(await Promise.race([reset, sleep(20_000, 'not cut')])).toBe(constants.NGHTTP2_CANCEL);
  }
  expect(server.connections()).toEqual([]);
});

test('the xDS server sends the status of an ended stream if the client reads in time', async ({ start }) => {
  const { server, congested, behindNothing } = await refusedWhileUnread(start);
  await sleep(300);
  for (const stream of [congested, behindNothing]) stream.read();
  for (const { trailers } of [congested, behindNothing]) {
    expect(await trailers).toMatchObject({ 'grpc-status': '7', 'grpc-message': 'no%20such%20group' });
  }
  await eventuallyHolds(() => expect(server.connections()).toEqual([]));
});
