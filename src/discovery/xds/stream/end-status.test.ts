/**
 * When the server ends a stream, the client receives status and message, even if it prefers a later RST_STREAM with an error code to the status
 * (gRPC's C core: Python, C++, Ruby).
 */
import { connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { test as base, expect } from 'vitest';
import { clusterType, endpointType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, givenNode, giveServers } from '../../../../test/fixtures/given-server.ts';
import { adsPath } from '../../../../test/harness/raw-http2.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { AdsServerOptions } from '../ads-server-options.ts';
import type { ResourceSource } from '../resource-source.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const request = (fields: object): Uint8Array =>
  toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, fields));
const introduction = request({ node: givenNode, typeUrl: clusterType });
const names = Array.from({ length: 50 }, (_, i) => `outbound|80||${i}.example.com`);

function message(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Sends messages without closing the client's side. */
async function endStatusOf(
  port: number,
  messages: readonly Uint8Array[],
): Promise<{ rst: number; fields: IncomingHttpHeaders }> {
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request(
    { ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc', te: 'trailers' },
    { endStream: false },
  );
  let fields: IncomingHttpHeaders = {};
  const note = (headers: IncomingHttpHeaders): void => {
    fields = { ...fields, ...headers };
  };
  stream
    .on('response', note)
    .on('trailers', note)
    .on('error', () => {})
    .resume();
  for (const bytes of messages) stream.write(message(bytes));
  // A client that receives no reset closes its side after the status.
  stream.on('end', () => stream.end());
  await new Promise((resolve) => stream.once('close', resolve));
  session.destroy();
  return { rst: stream.rstCode ?? -1, fields };
}

/** A source that rejects nodes, immediately or shortly after serving them. */
function refusing(rejectionTime: 'at once' | 'later'): ResourceSource {
  const source = new ScriptedSource();
  source.set(clusterType, 'a');
  return {
    openNode(node, onRejected) {
      if (rejectionTime === 'at once') return { error: 'no identity of bank', code: 'PERMISSION_DENIED' };
      setImmediate(() => onRejected?.({ code: 'RESOURCE_EXHAUSTED', reason: 'another namespace needs its slot' }));
      return source.openNode(node);
    },
  };
}

const limits = { maxNames: 10 };
const cases: readonly [string, status, RegExp, Partial<AdsServerOptions>, readonly Uint8Array[]][] = [
  ['of a client that is denied', status.PERMISSION_DENIED, /identity/, { source: refusing('at once') }, [introduction]],
  [
    ...(['of a client that continues to send while it is denied', status.PERMISSION_DENIED, /identity/] as const),
    ...([{ source: refusing('at once') }, Array.from({ length: 50 }, () => introduction)] as const),
  ],
  [
    ...(['of a client that is displaced', status.RESOURCE_EXHAUSTED, /slot/] as const),
    ...([{ source: refusing('later') }, [introduction]] as const),
  ],
  [
    'of a client without a node',
    status.INVALID_ARGUMENT,
    /node.*\[NODE_INVALID\]$/,
    {},
    [request({ typeUrl: clusterType })],
  ],
  [
    'of a client without a resource type',
    status.INVALID_ARGUMENT,
    /type_url.*\[XDS_REQUEST_INVALID\]$/,
    {},
    [introduction, request({})],
  ],
  [
    'of a client that sends no request',
    status.INVALID_ARGUMENT,
    /\[XDS_REQUEST_INVALID\]$/,
    {},
    [Buffer.alloc(4, 255)],
  ],
  [
    ...([
      'of a client that subscribes to too many names',
      status.RESOURCE_EXHAUSTED,
      /\[STREAM_NAMES_EXHAUSTED\]$/,
    ] as const),
    ...([{ limits }, [introduction, request({ typeUrl: endpointType, resourceNames: names })]] as const),
  ],
  [
    'of a server that is not ready',
    status.UNAVAILABLE,
    /\[SERVER_NOT_READY\]$/,
    { isReady: () => false },
    [introduction],
  ],
];

test.for(cases)('a stream %s ends with a gRPC status and without an HTTP/2 error code', async (one, { start }) => {
  const [, code, reason, options, messages] = one;
  const { port } = await start(options);
  // Repeated, because whether a reset overtakes the status depends on timing.
  for (let i = 0; i < 10; i++) {
    const { rst, fields } = await endStatusOf(port, messages);
    expect(Number(fields['grpc-status'])).toBe(code);
    expect(decodeURIComponent(`${fields['grpc-message']}`)).toMatch(reason);
    expect(rst).toBe(constants.NGHTTP2_NO_ERROR);
  }
});
