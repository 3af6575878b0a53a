/** What an agent makes of a control plane's word about its bootstrap (spec/discovery.md §8.9 BOOTSTRAP). */

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
import { ToldFiles } from '../envoy/record/told-files.ts';
import { askForPatches, BootstrapPatches } from './bootstrap-patches.ts';

const own = {
  node: {
    id: 'sidecar~10.0.0.1~web.shop~local',
    cluster: 'web.shop',
    metadata: { NAMESPACE: 'shop', N: [1, { a: true }] },
  },
  admin: { address: { socket_address: { address: '127.0.0.1', port_value: 15000 } } },
  static_resources: { clusters: [{ name: 'xds-grpc', connect_timeout: '0.250s' }] },
};

type Answer = (stream: ServerHttp2Stream, request: DiscoveryRequest) => void;

/** A control plane that answers so. */
async function given(answer: Answer) {
  const requests: DiscoveryRequest[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session.once('close', () => sessions.delete(session))));
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.once('data', (frame: Buffer) => {
      requests.push(fromBinary(DiscoveryRequestSchema, frame.subarray(5)));
      answer(stream, requests.at(-1)!);
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

/** Asks a control plane that answers so. */
async function asked(answer: Answer, patches = new BootstrapPatches()) {
  const { address, requests, sessions } = await given(answer);
  const lines: string[] = [];
  const { output, hasTaken } = await outcome(address, patches, lines);
  await expect.poll(() => sessions.size).toBe(0);
  return { output, hasTaken, requests, merged: patches.mergedInto(own), lines };
}

/** What the effect tells its chart. */
async function outcome(discoveryAddress: string, patches: BootstrapPatches, lines: string[]) {
  const told: (PatchesRequested | PatchesCompleted)[] = [];
  const chart = setup({ actors: { ask: effect(discoveryAddress, patches, lines) } }).createMachine({
    invoke: { src: 'ask', input: { shows: 'token' } },
    on: { '*': { actions: ({ event }) => void told.push(event as PatchesRequested | PatchesCompleted) } },
  });
  const actor = createActor(chart).start();
  await expect.poll(() => told.at(-1)?.type).toBe('patches.completed');
  actor.stop();
  const { answer: output } = told.at(-1) as PatchesCompleted;
  return { output, hasTaken: told[0]!.type === 'patches.requested' };
}

function effect(discoveryAddress: string, patches: BootstrapPatches, lines: string[]) {
  return askForPatches({
    discoveryAddress,
    credentials: async () => ({ headers: { authorization: 'Bearer t' }, shown: 'a token' }),
    headers: {},
    bootstrap: () => own,
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

const says =
  (bootstrap: JsonValue): Answer =>
  (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(response(bootstrap));
  };

test('it is asked with the node of the bootstrap, by name, and what it says is merged into each bootstrap', async () => {
  const { output, requests, merged } = await asked(
    says({
      admin: { profile_path: '/p' },
      static_resources: { clusters: [{ name: 'mine' }] },
      stats_flush_interval: '7s',
    }),
  );
  expect(output).toEqual({ is: 'patched' });
  expect(requests).toMatchObject([{ node: { id: own.node.id, cluster: 'web.shop' }, resourceNames: ['patches'] }]);
  expect(requests[0]!.node!.metadata).toEqual(own.node.metadata);
  expect(merged).toEqual({
    ...own,
    admin: { ...own.admin, profile_path: '/p' },
    static_resources: { clusters: [...own.static_resources.clusters, { name: 'mine' }] },
    stats_flush_interval: '7s',
  });
});

test('where nothing is patched the bootstrap stays the very same', async () => {
  const { output, merged } = await asked(says({}));
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(own);
});

test('where response contains no bootstrap, none is patched', async () => {
  const { output, merged, lines } = await asked((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(
      frameOf(toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, { typeUrl: bootstrapType }))),
    );
  });
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(own);
  expect(linesOf(lines, 'patches.unsupported', { reason: 'response contains no bootstrap' })).toHaveLength(1);
});

test('a whole bootstrap, which other control planes make, is no patch', async () => {
  const { output, merged, lines } = await asked(
    says({ node: { id: 'x' }, static_resources: { clusters: [{ name: 'theirs' }] } }),
  );
  expect(output).toEqual({ is: 'unpatched' });
  expect(merged).toBe(own);
  expect(
    linesOf(lines, 'patches.unsupported', { reason: 'response is a complete bootstrap, not patches' }),
  ).toHaveLength(1);
});

test('a control plane that takes the question and says nothing is not listened to any more once the chart says so', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { address, sessions, requests } = await given((stream) =>
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }),
  );
  const patches = new BootstrapPatches();
  const lines: string[] = [];
  const chart = createActor(bootstrapPatchesMachine.provide({ actors: { ask: effect(address, patches, lines) } }));
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
  expect(patches.mergedInto(own)).toBe(own);
});

test.each<[string, Answer, object]>([
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
])('a control plane that %s is asked again', async (_, answer, expected) => {
  const { output, hasTaken, merged, lines } = await asked(answer);
  expect(hasTaken).toBe(true);
  expect(output).toMatchObject({ is: 'unreachable', chance: 0.5, ...expected });
  expect(merged).toBe(own);
  expect(linesOf(lines, 'patches.unavailable')).not.toEqual([]);
});

test('nobody there: asked again', async () => {
  const { output, hasTaken } = await outcome('127.0.0.1:1', new BootstrapPatches(), []);
  expect([output.is, hasTaken]).toEqual(['unreachable', false]);
});

test('what cannot be merged ends the start with its reason', async () => {
  const { output, merged } = await asked((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    // A Bootstrap whose first field is longer than all of it.
    stream.write(frameOf(Buffer.from([0x12, ...packed(bootstrapType, Buffer.from([0x0a, 0x05, 1]))])));
  });
  expect(output).toMatchObject({ is: 'unusable' });
  expect(merged).toBe(own);
});

function packed(typeUrl: string, value: Buffer): Buffer {
  const any = Buffer.concat([
    Buffer.from([0x0a, typeUrl.length]),
    Buffer.from(typeUrl),
    Buffer.from([0x12, value.length]),
    value,
  ]);
  return Buffer.concat([Buffer.from([any.length]), any]);
}

describe('what was told once is kept for the next agent of the container, which does not ask', () => {
  /** @returns what the next agent makes of it, and whether it has asked */
  async function afterwards(answer: Answer) {
    const folder = temporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const first = await asked(answer, new BootstrapPatches(new ToldFiles(folder.path)));
    const patches = new BootstrapPatches(new ToldFiles(folder.path));
    await patches.begin(() => own);
    const { output, requests, merged } = await asked(answer, patches);
    return { first: first.merged, second: merged, output, asked: requests.length };
  }

  test('patches', async () => {
    const { first, second, output, asked: times } = await afterwards(says({ stats_flush_interval: '7s' }));
    expect(second).toEqual({ ...own, stats_flush_interval: '7s' });
    expect({ second, output, times }).toEqual({ second: first, output: { is: 'patched' }, times: 0 });
  });

  test('or that there are none', async () => {
    const { second, asked: times } = await afterwards(says({}));
    expect({ second, times }).toEqual({ second: own, times: 0 });
  });

  test('but not what could not be merged', async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const kept = new ToldFiles(folder.path);
    kept.keep('bootstrap-patches', Buffer.from('no message'));
    await kept.settled();
    const patches = new BootstrapPatches(kept);
    await expect(patches.begin(() => own)).rejects.toThrow();
    expect(patches.isKnown).toBe(false);
  });
});
