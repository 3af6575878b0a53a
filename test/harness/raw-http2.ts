/**
 * HTTP/2 of an untrusted client: frames of any kind in any order, written to a plain socket. It only reads the types of received frames, and enforces
 * no protocol rule.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export type FrameType = keyof typeof frameTypes;

export const flags = { endStream: 1, ack: 1, endHeaders: 4 } as const;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const adsPath = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

const headBytes = 9;
const none = Buffer.alloc(0);

export function frame(type: FrameType, flag: number, stream: number, payload: Uint8Array = none): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = frameTypes[type];
  head[4] = flag;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A number in HPACK: after the prefix, the rest is encoded in groups of seven bits. */
function integer(value: number, prefixBits: number, first: number): number[] {
  const maxInPrefix = 2 ** prefixBits - 1;
  if (value < maxInPrefix) return [first | value];
  const bytes = [first | maxInPrefix];
  let remainder = value - maxInPrefix;
  for (; remainder >= 128; remainder >>= 7) bytes.push((remainder & 127) | 128);
  return [...bytes, remainder];
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from(integer(bytes.length, 7, 0)), bytes]);
}

/** A literal field that is not added to the dynamic table. */
export function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

/** A literal field that is added to the dynamic table, at index 62. */
export function indexedField(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/** A field in the tables, by index. */
export function indexedHeader(index: number): Buffer {
  return Buffer.from(integer(index, 7, 0x80));
}

/** The header block of an xDS stream, as gRPC clients send it. */
export function requestHeaders(path = adsPath, extraFields: readonly Uint8Array[] = []): Buffer {
  const fields: [string, string][] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'x'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ];
  return Buffer.concat([...fields.map(([name, value]) => literal(name, value)), ...extraFields]);
}

export interface RawHttp2Options {
  readonly localAddress?: string;
  readonly tls?: boolean;
}

/** One connection. Drops received data, except frame types and the first GOAWAY's code. */
export class RawHttp2 {
  readonly socket: Socket;
  /** Number of received frames by type. */
  readonly got = new Map<number, number>();
  /** The code of the first GOAWAY. */
  goaway: number | undefined;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  #unparsedBytes: Buffer = none;

  constructor(port: number, { localAddress, tls = false }: RawHttp2Options = {}) {
    const options = { port, host: '127.0.0.1', ...(localAddress !== undefined && { localAddress }) };
    this.socket = tls
      ? connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
      : connect({ ...options, noDelay: true });
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.on('data', (bytes: Buffer) => this.#read(bytes));
  }

  /**
   * Connects and sends the preface.
   * @returns false if no server accepted the connection
   */
  async begin(settings: Uint8Array = none): Promise<boolean> {
    this.send(preface, frame('settings', 0, 0, settings));
    await Promise.race([new Promise((resolve) => this.socket.once('data', resolve)), this.closed]);
    return !this.isOver;
  }

  get isOver(): boolean {
    return this.socket.destroyed;
  }

  /** @returns false if bytes are still buffered */
  send(...frames: Uint8Array[]): boolean {
    return this.isOver || this.socket.write(Buffer.concat(frames));
  }

  /** Sends, and waits until the bytes are written or the connection is closed. */
  async flush(...frames: Uint8Array[]): Promise<void> {
    if (this.send(...frames)) return;
    await Promise.race([new Promise((resolve) => this.socket.once('drain', resolve)), this.closed]);
  }

  close(): void {
    this.socket.destroy();
  }

  #read(bytes: Buffer): void {
    let unparsed = this.#unparsedBytes.length === 0 ? bytes : Buffer.concat([this.#unparsedBytes, bytes]);
    while (unparsed.length >= headBytes) {
      const frameLength = headBytes + unparsed.readUIntBE(0, 3);
      if (unparsed.length < frameLength) break;
      const type = unparsed[3]!;
      this.got.set(type, (this.got.get(type) ?? 0) + 1);
      if (type === frameTypes.goaway) this.goaway ??= unparsed.readUInt32BE(headBytes + 4);
      unparsed = unparsed.subarray(frameLength);
    }
    this.#unparsedBytes = unparsed;
  }
}
