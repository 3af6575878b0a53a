import { once } from 'node:events';
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { create, fromBinary, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createActor, setup } from 'xstate';
import { bootstrapPatchesMachine } from '../../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import type { PatchesCompleted, PatchesRequested } from '../../../machines/agent/protocol.ts';
import { bootstrapType } from '../../../machines/discovery/xds/ads-types.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { StoredFiles } from '../envoy/record/stored-files.ts';
import { BootstrapPatches, requestPatches } from './bootstrap-patches.ts';

const generatedBootstrap = {
  node: {
    id: 'sidecar~10.0.0.1~web.shop~local',
    cluster: 'web.shop',
    metadata: { NAMESPACE: 'shop', N: [1, { a: true }] },
  },
  admin: { address: { socket_address: { address: '127.0.0.1', port_value: 15000 } } },
  static_resources: { clusters: [{ name: 'xds-grpc', connect_timeout: '0.250s' }] },
};

type Responder = (stream: ServerHttp2Stream, request: DiscoveryRequest) => void;

async function startControlPlane(respond: Responder) {
  const requests: DiscoveryRequest[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session.once('close', () => sessions.delete(session))));
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.once('data', (frame: Buffer) => {
      requests.push(fromBinary(DiscoveryRequestSchema, frame.subarray(5)));
      respond(stream, requests.at(-1)!);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests, sessions };
}

/** Requests patches from a control plane. */
async function requestFrom(respond: Responder, patches = new BootstrapPatches()) {
  const { address, requests, sessions } = await startControlPlane(respond);
  const lines: string[] = [];
  const { output, hasTaken } = await runRequest(address, patches, lines);
  await expect.poll(() => sessions.size).toBe(0);
  return { output, hasTaken, requests, merged: patches.mergedInto(generatedBootstrap), lines };
}

/** Collects the events that the effect sends to its chart. */
async function runRequest(discoveryAddress: string, patches: BootstrapPatches, lines: string[]) {
  const reportedEvents: (PatchesRequested | PatchesCompleted)[] = [];
  const chart = setup({ actors: { requestPatches: effect(discoveryAddress, patches, lines) } }).createMachine({
    invoke: { src: 'requestPatches', input: { credential: 'token' } },
    on: { '*': { actions: ({ event }) => void reportedEvents.push(event as PatchesRequested | PatchesCompleted) } },
  });
  const actor = createActor(chart).start();
  await expect.poll(() => reportedEvents.at(-1)?.type).toBe('patches.completed');
  actor.stop();
  const { result: output } = reportedEvents.at(-1) as PatchesCompleted;
  return { output, hasTaken: reportedEvents[0]!.type === 'patches.requested' };
}

function effect(discoveryAddress: string, patches: BootstrapPatches, lines: string[]) {
  return requestPatches({
    discoveryAddress,
    credentials: async () => ({ headers: { authorization: 'Bearer t' }, description: 'a token' }),
    headers: {},
    bootstrap: () => generatedBootstrap,
    patches,
    log: createLogger({ write: (line) => lines.push(line.trimEnd()) }),
    random: () => 0.5,
  });
}

const response = (bootstrap: JsonValue): Buffer => {
  const schema = envoyApi().getMessage('envoy.config.bootstrap.v3.Bootstrap')!;
  const value = toBinary(schema, fromJson(schema, bootstrap, { registry: envoyApi() }));
  const resources = [{ $typeName: 'google.protobuf.Any' as const, typeUrl: bootstrapType, value }];
  const message = create(DiscoveryResponseSchema, { versionInfo: '1', nonce: 'n', typeUrl: bootstrapType, resources });
  return frameOf(toBinary(DiscoveryResponseSchema, message));
};

const sends =
  (bootstrap: JsonValue): Responder =>
  (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(response(bootstrap));
  };

test('requests patches by name for the node of the bootstrap, and applies them to each bootstrap', async () => {
  const { output, requests, merged } = await requestFrom(
    sends({
      admin: { profile_path: '/p' },
      static_resources: { clusters: [{ name: 'mine' }] },
      stats_flush_interval: '7s',
    }),
  );
  expect(output).toEqual({ is: 'patched' });
  expect(requests).toMatchObject([
    { node: { id: generatedBootstrap.node.id, cluster: 'web.shop' }, resourceNames: ['patches'] },
  ]);
  expect(requests[0]!.node!.metadata).toEqual(generatedBootstrap.node.metadata);
  expect(merged).toEqual({
    ...generatedBootstrap,
    admin: { ...generatedBootstrap.admin, profile_path: '/p' },
    static_resources: { clusters: [...generatedBootstrap.static_resources.clusters, { name: 'mine' }] },
    stats_flush_interval: '7s',
  });
});

test('keeps the bootstrap unchanged if the response contains no patches', async () => {
  const { output, merged } = await requestFrom(sends({}));
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(generatedBootstrap);
});

test('keeps the bootstrap unchanged if the response contains no bootstrap', async () => {
  const { output, merged, lines } = await requestFrom((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(
      frameOf(toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, { typeUrl: bootstrapType }))),
    );
  });
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(generatedBootstrap);
  expect(linesOf(lines, 'patches.unsupported', { reason: 'response contains no bootstrap' })).toHaveLength(1);
});

test('keeps the bootstrap unchanged if another control plane responds with a complete bootstrap', async () => {
  const { output, merged, lines } = await requestFrom(
    sends({ node: { id: 'x' }, static_resources: { clusters: [{ name: 'theirs' }] } }),
  );
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(generatedBootstrap);
  expect(
    linesOf(lines, 'patches.unsupported', { reason: 'response is a complete bootstrap, not patches' }),
  ).toHaveLength(1);
});

test('ignores a response that arrives after the timeout of the chart', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { address, sessions, requests } = await startControlPlane((stream) =>
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }),
  );
  const patches = new BootstrapPatches();
  const lines: string[] = [];
  const chart = createActor(
    bootstrapPatchesMachine.provide({ actors: { requestPatches: effect(address, patches, lines) } }),
  );
  chart.start();
  while (requests.length === 0) await new Promise(setImmediate);
  expect(chart.getSnapshot().value).toEqual({ requesting: 'sent' });
  await vi.advanceTimersByTimeAsync(9_999);
  expect([chart.getSnapshot().status, lines]).toEqual(['active', []]);
  await vi.advanceTimersByTimeAsync(1);
  expect(chart.getSnapshot()).toMatchObject({ status: 'done', output: { unusable: '' } });
  while (sessions.size > 0) await new Promise(setImmediate);
  expect(lines).toHaveLength(1);
  expect(linesOf(lines, 'patches.unsupported', { reason: 'no response within 10000 ms' })).toHaveLength(1);
  expect(patches.mergedInto(generatedBootstrap)).toBe(generatedBootstrap);
});

test.each<[string, Responder, object]>([
  [
    'refuses this agent',
    (stream) =>
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '7' }, { endStream: true }),
    { isRefusal: true },
  ],
  ['breaks off', (stream) => stream.session!.destroy(), { isRefusal: false }],
  [
    'sends more than a bootstrap is',
    (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(Buffer.from([0, 0x7f, 0, 0, 0, 1]));
    },
    { reason: expect.stringContaining('RESOURCE_EXHAUSTED') },
  ],
  [
    'sends what is no message',
    (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(frameOf(Buffer.from([0x12, 0x7f])));
    },
    { isRefusal: false },
  ],
])('retries if the control plane %s', async (_, respond, expected) => {
  const { output, hasTaken, merged, lines } = await requestFrom(respond);
  expect(hasTaken).toBe(true);
  expect(output).toMatchObject({ is: 'unreachable', chance: 0.5, ...expected });
  expect(merged).toBe(generatedBootstrap);
  expect(linesOf(lines, 'patches.unavailable')).not.toEqual([]);
});

test('retries if the control plane is unreachable', async () => {
  const { output, hasTaken } = await runRequest('127.0.0.1:1', new BootstrapPatches(), []);
  expect([output.is, hasTaken]).toEqual(['unreachable', false]);
});

test('cancels the start with the reason if patches cannot be merged', async () => {
  const { output, merged } = await requestFrom((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    // The first field of this Bootstrap is longer than the message.
    stream.write(frameOf(Buffer.from([0x12, ...packAny(bootstrapType, Buffer.from([0x0a, 0x05, 1]))])));
  });
  expect(output).toMatchObject({ is: 'unusable' });
  expect(merged).toBe(generatedBootstrap);
});

function packAny(typeUrl: string, value: Buffer): Buffer {
  const anyMessage = Buffer.concat([
    Buffer.from([0x0a, typeUrl.length]),
    Buffer.from(typeUrl),
    Buffer.from([0x12, value.length]),
    value,
  ]);
  return Buffer.concat([Buffer.from([anyMessage.length]), anyMessage]);
}

describe('bootstrap patches of the next agent', () => {
  /** Starts an agent and then the next agent of its container, and returns the results of both. */
  async function afterwards(respond: Responder) {
    const folder = temporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const first = await requestFrom(respond, new BootstrapPatches(new StoredFiles(folder.path)));
    const patches = new BootstrapPatches(new StoredFiles(folder.path));
    await patches.restore(() => generatedBootstrap);
    const { output, requests, merged } = await requestFrom(respond, patches);
    return { first: first.merged, second: merged, output, requestCount: requests.length };
  }

  test('are those of the previous agent, without another request', async () => {
    const { first, second, output, requestCount: times } = await afterwards(sends({ stats_flush_interval: '7s' }));
    expect(second).toEqual({ ...generatedBootstrap, stats_flush_interval: '7s' });
    expect({ second, output, times }).toEqual({ second: first, output: { is: 'patched' }, times: 0 });
  });

  test('are empty if the previous agent received none', async () => {
    const { second, requestCount: times } = await afterwards(sends({}));
    expect({ second, times }).toEqual({ second: generatedBootstrap, times: 0 });
  });

  test('are rejected if they cannot be merged', async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const storedFiles = new StoredFiles(folder.path);
    storedFiles.store('bootstrap-patches', Buffer.from('no message'));
    await storedFiles.waitUntilSettled();
    const patches = new BootstrapPatches(storedFiles);
    await expect(patches.restore(() => generatedBootstrap)).rejects.toThrow();
    expect(patches.isKnown).toBe(false);
  });
});
