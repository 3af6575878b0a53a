/** Tests floods of frames that clients can send at low cost. The session is closed or the address throttled, and other clients are served. */
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { test as base, beforeAll, expect } from 'vitest';
import { type GiveServer, giveServers, openSubscribedStream } from '../../../../test/fixtures/given-server.ts';
import {
  flags,
  frame,
  indexedField,
  indexedHeader,
  literal,
  RawHttp2,
  requestHeaders,
  uint32,
} from '../../../../test/harness/raw-http2.ts';
import { msWithoutQueueing } from '../../../../test/harness/without-queueing.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const floodAddress = '127.0.0.9';
/** Budget of an unidentified client. */
const addressPace = { burst: 300, perSecond: 20, firstHoldMs: 10_000 };
/** More than any flood needs. */
const maxBytes = 48 * 1024 * 1024;
const maxMs = 40_000;

interface Flood {
  /** Initial bytes of each connection. */
  readonly first?: Uint8Array;
  /** Data of the nth write. */
  readonly next: (n: number) => Uint8Array;
}

const streamOne = frame('headers', flags.endHeaders, 1, requestHeaders());
const unended = frame('headers', 0, 1, requestHeaders());
const longValue = 'v'.repeat(3_900);
const learnt = frame(
  'headers',
  flags.endHeaders,
  1,
  Buffer.concat([requestHeaders(), indexedField('x-long', longValue)]),
);
const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([0, id]), uint32(value)]);

function times(count: number, bytes: Uint8Array): Buffer {
  return Buffer.concat(Array.from({ length: count }, () => bytes));
}

function opening(...fields: Uint8Array[]): (n: number) => Buffer {
  return (n) => frame('headers', flags.endHeaders, 2 * n + 3, requestHeaders(undefined, fields));
}

/** A frame of an unknown type. */
function unknownFrame(): Buffer {
  const bytes = frame('data', 0, 0, Buffer.alloc(100));
  bytes[3] = 0xee;
  return bytes;
}

/** A compressed gRPC message that inflates to 64 MiB. */
let inflating: Buffer;

beforeAll(() => {
  const bytes = gzipSync(Buffer.alloc(2 ** 26), { level: 1 });
  inflating = Buffer.concat([Buffer.from([1]), uint32(bytes.length), bytes]);
});

const floods: readonly [string, Flood][] = [
  ['pings', { next: () => times(500, frame('ping', 0, 0, Buffer.alloc(8))) }],
  ['settings', { next: () => times(500, frame('settings', 0, 0, setting(4, 65_536))) }],
  ['empty settings', { next: () => times(500, frame('settings', 0, 0)) }],
  ['settings acknowledgements', { next: () => times(500, frame('settings', flags.ack, 0)) }],
  [
    'settings that open and close windows',
    {
      first: streamOne,
      next: () => times(250, frame('settings', 0, 0, Buffer.concat([setting(4, 0), setting(4, 9)]))),
    },
  ],
  ['window updates of 0 bytes', { first: streamOne, next: () => times(500, frame('windowUpdate', 0, 1, uint32(0))) }],
  [
    'window updates of one byte',
    { first: streamOne, next: () => times(2_000, frame('windowUpdate', 0, 0, uint32(1))) },
  ],
  [
    'priorities of missing streams',
    { next: (n) => times(2_000, frame('priority', 0, 2 * n + 3, Buffer.from([0, 0, 0, 1, 5]))) },
  ],
  ['empty data frames', { first: streamOne, next: () => times(1_000, frame('data', 0, 1)) }],
  ['headers without end', { first: unended, next: () => times(500, frame('continuation', 0, 1, literal('a', 'b'))) }],
  ['empty continuation frames', { first: unended, next: () => times(500, frame('continuation', 0, 1)) }],
  ['headers of twelve thousand bytes', { next: opening(...Array.from({ length: 3 }, () => literal('x', longValue))) }],
  ['headers of 64 KiB, of a byte each', { first: learnt, next: opening(times(16, indexedHeader(62))) }],
  ['headers of 15 MB, of a byte each', { first: learnt, next: opening(times(4_000, indexedHeader(62))) }],
  [
    'streams without a method',
    { next: (n) => frame('headers', flags.endHeaders, 2 * n + 1, requestHeaders('/no/such')) },
  ],
  ['unknown frames', { next: () => times(500, unknownFrame()) }],
  ['HTTP/1', { first: Buffer.alloc(9), next: () => Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n') }],
  [
    'compressed messages that inflate',
    {
      first: frame('headers', flags.endHeaders, 1, requestHeaders(undefined, [literal('grpc-encoding', 'gzip')])),
      next: (n) => {
        const chunk = inflating.subarray(n * 16_000, (n + 1) * 16_000);
        return chunk.length > 0 ? frame('data', 0, 1, chunk) : frame('reset', 0, 1, uint32(8));
      },
    },
  ],
];

/** Connects again and again until the server resets connections. @returns whether it did */
async function isThrottled(port: number, { first, next }: Flood): Promise<boolean> {
  const endMs = performance.now() + maxMs;
  let sentBytes = 0;
  while (sentBytes < maxBytes && performance.now() < endMs) {
    const connection = new RawHttp2(port, { localAddress: floodAddress });
    if (!(await connection.begin())) return true;
    connection.send(first ?? Buffer.alloc(0));
    for (let n = 0; n < 4_000 && !connection.isOver && sentBytes < maxBytes; n++) {
      const bytes = next(n);
      sentBytes += bytes.length;
      await Promise.race([connection.flush(bytes), sleep(500)]);
      if (n % 4 === 0) await sleep(0);
    }
    connection.close();
  }
  // Waits for the next charge, because received data is charged once a second.
  await sleep(1_500);
  const last = new RawHttp2(port, { localAddress: floodAddress });
  const isAccepted = await last.begin();
  last.close();
  return !isAccepted;
}

test.for(floods)(
  'The xDS server throttles an unidentified client that sends %s, without delaying others',
  async ([, flood], { start }) => {
    const { port, client } = await start({ limits: { addressPace } });
    const rssBefore = process.memoryUsage.rss();
    const attack = isThrottled(port, flood);
    expect(await msWithoutQueueing([process.pid], () => openSubscribedStream(client()))).toBeLessThan(2_000);
    expect(await attack).toBe(true);
    expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(200_000_000);
  },
);
