/** A proxy between a program and the API server, which records writes and can delay a write or its response. */
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createAuthority } from '../certs/authority.ts';
import type { ApiServerAddress } from './api-server-process.ts';

/** A request that writes. */
export interface RecordedWrite {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Time at which the request was received completely. */
  readonly receivedAt: number;
  /** Time of forwarding, if the request was forwarded. */
  forwardedAt?: number;
  status?: number;
}

/** Promises that a write or its response waits for. */
export interface WriteHold {
  readonly untilForwarded?: Promise<void>;
  readonly untilResponded?: Promise<void>;
}

const readingMethods = ['GET', 'HEAD', 'OPTIONS'];

export class RecordingProxy {
  readonly writes: RecordedWrite[] = [];
  /** Called for each write. */
  hold: (write: RecordedWrite) => WriteHold = () => ({});
  readonly #target: ApiServerAddress;
  readonly #authority = createAuthority();
  readonly #server;
  #session: ClientHttp2Session | undefined;

  private constructor(target: ApiServerAddress) {
    this.#target = target;
    const { certificate: cert, privateKey: key } = this.#authority.issue(['127.0.0.1']);
    this.#server = createSecureServer({ cert, key, settings: { maxConcurrentStreams: 1_000 } });
    this.#server.on('session', (session) => session.on('error', () => {}));
    this.#server.on('stream', (stream, headers) => void this.#serve(stream, headers));
  }

  static async startFor(target: ApiServerAddress): Promise<RecordingProxy> {
    const proxy = new RecordingProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): ApiServerAddress {
    const { port } = this.#server.address() as AddressInfo;
    return { ...this.#target, url: `https://127.0.0.1:${port}`, ca: this.#authority.certificate };
  }

  close(): void {
    this.#server.close();
    this.#session?.destroy();
  }

  /** Returns writes except those of Leases. */
  dutyWrites(): RecordedWrite[] {
    return this.writes.filter(({ path }) => !path.includes('/leases'));
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => {});
    const method = String(headers[':method']);
    if (readingMethods.includes(method)) return this.#forward(stream, headers, undefined, {}, undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const write: RecordedWrite = {
      ...{ method, path: String(headers[':path']), body: body.toString('utf8'), receivedAt: performance.now() },
    };
    this.writes.push(write);
    const hold = this.hold(write);
    await hold.untilForwarded;
    write.forwardedAt = performance.now();
    this.#forward(stream, headers, body, hold, write);
  }

  /** A delayed write is forwarded even if its client has disconnected: its bytes were in transit. */
  #forward(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    body: Buffer | undefined,
    { untilResponded }: WriteHold,
    write: RecordedWrite | undefined,
  ): void {
    const requestHeaders = Object.fromEntries(
      Object.entries(headers).filter(([name]) => ![':authority', ':scheme', 'host'].includes(name)),
    );
    const targetStream = this.#openSession().request(requestHeaders, { endStream: body === undefined });
    targetStream.on('error', () => stream.close(constants.NGHTTP2_CANCEL));
    stream.on('close', () => {
      if (write === undefined) targetStream.close(constants.NGHTTP2_CANCEL);
    });
    targetStream.on('response', async (response) => {
      const { ':status': status, ...responseHeaders } = response;
      if (write !== undefined) write.status = status!;
      await untilResponded;
      if (stream.destroyed || stream.closed) return targetStream.resume();
      stream.respond({ ':status': status, ...responseHeaders } as never);
      return targetStream.pipe(stream);
    });
    if (body !== undefined) targetStream.end(body);
  }

  #openSession(): ClientHttp2Session {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(this.#target.url, { ca: this.#target.ca });
      this.#session.on('error', () => {});
    }
    return this.#session;
  }
}
