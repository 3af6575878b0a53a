/** However a stream ends, `grpc_server_handled_total` counts the status that the client received. */
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { test as base, expect, vi } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type GivenServer, type GiveServer, givenNode, giveServers } from '../../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { adsPath } from '../../../../test/harness/raw-http2.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { AdsObserver } from '../ads-observer.ts';
import type { AdsServerOptions } from '../ads-server-options.ts';
import type { ResourceSource } from '../resource-source.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

function framed(fields: object): Buffer {
  const bytes = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, fields));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const introduction = framed({ node: givenNode, typeUrl: clusterType });

/** Does not use grpc-js, whose client replaces some statuses. */
class RawStream {
  readonly #session;
  readonly #stream;
  #fields: IncomingHttpHeaders = {};

  constructor(port: number, headers: object) {
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#stream = this.#session.request(
      { ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc', te: 'trailers', ...headers },
      { endStream: false },
    );
    const note = (headers: IncomingHttpHeaders): void => {
      this.#fields = { ...this.#fields, ...headers };
    };
    this.#stream
      .on('response', note)
      .on('trailers', note)
      .on('error', () => {})
      .resume();
    this.#stream.on('end', () => this.#stream.end());
  }

  send(bytes: Buffer): void {
    this.#stream.write(bytes);
  }

  halfClose(): void {
    this.#stream.end();
  }

  loseConnection(): void {
    this.#session.destroy();
  }

  /** Name of the status code that the client received; CANCELLED if it received none. */
  async readEndStatus(): Promise<string> {
    if (!this.#stream.closed || !this.#stream.destroyed) {
      await new Promise((resolve) => this.#stream.once('close', resolve));
    }
    this.#session.destroy();
    const code = this.#fields['grpc-status'];
    return code === undefined ? 'CANCELLED' : status[Number(code)]!;
  }
}

interface StatusCase {
  readonly expected: string;
  readonly options?: Partial<AdsServerOptions>;
  readonly observer?: AdsObserver;
  readonly headers?: object;
  readonly introduction?: Buffer;
  /** Called when the stream is served. */
  readonly act?: (stream: RawStream, given: GivenServer) => void;
}

function fail(): never {
  throw new Error('planted');
}

/** A source that fails when a response was sent. */
function failing(): ResourceSource {
  const source = new ScriptedSource();
  source.set(clusterType, 'a');
  return {
    openNode(node) {
      const openedSource = source.openNode(node);
      return 'error' in openedSource ? openedSource : { resources: { ...openedSource.resources, sent: fail } };
    },
  };
}

/** A recorder that fails when the chart classifies a request of an unknown type. */
const failingRecorder: Recorder = {
  inspect(event) {
    if (event.type === '@xstate.microstep' && event.event.type === 'request.classified') fail();
  },
  record() {},
  omits: () => true,
  observe: () => () => {},
  settle() {},
  close() {},
};

const oversized = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]);
const damagedGzip = Buffer.from([1, 0, 0, 0, 1, 0]);

const streamEnds: Record<string, StatusCase> = {
  'a half-close': { expected: 'OK', act: (stream) => stream.halfClose() },
  'the loss of its connection': { expected: 'CANCELLED', act: (stream) => stream.loseConnection() },
  'a disconnect command': {
    expected: 'OK',
    act: (_, { server }) => void server.disconnect(server.connections()[0]!.id),
  },
  'the deadline of the client': { expected: 'DEADLINE_EXCEEDED', headers: { 'grpc-timeout': '300m' } },
  'a request without a node': { expected: 'INVALID_ARGUMENT', introduction: framed({ typeUrl: clusterType }) },
  'a request without a type': { expected: 'INVALID_ARGUMENT', act: (stream) => stream.send(framed({})) },
  'a request that is too large': { expected: 'RESOURCE_EXHAUSTED', act: (stream) => stream.send(oversized) },
  'a damaged compressed request': {
    expected: 'INTERNAL',
    headers: { 'grpc-encoding': 'gzip' },
    act: (stream) => stream.send(damagedGzip),
  },
  'an error while a request is read': { expected: 'UNAVAILABLE', observer: { requestReceived: fail } },
  'an error after a response': { expected: 'UNAVAILABLE', options: { source: failing() } },
  'an error of its chart': {
    expected: 'UNAVAILABLE',
    options: { recorder: failingRecorder },
    act: (stream) => stream.send(framed({ typeUrl: 'unknown/Type' })),
  },
};

test.for(Object.entries(streamEnds))(
  'a stream that ends by %s is counted with the status that its client received',
  async ([, end], { start }) => {
    const streamClosed = vi.fn();
    const started = await start({ ...end.options, observer: { ...end.observer, streamClosed } });
    const stream = new RawStream(started.port, end.headers ?? {});
    stream.send(end.introduction ?? introduction);
    if (end.act !== undefined) await eventuallyHolds(() => expect(started.server.connections()).toHaveLength(1));
    end.act?.(stream, started);
    expect(await stream.readEndStatus()).toBe(end.expected);
    await eventuallyHolds(() => expect(streamClosed).toHaveBeenCalledTimes(1));
    expect(streamClosed).toHaveBeenCalledWith(expect.anything(), end.expected);
  },
);
