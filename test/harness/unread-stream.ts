/** An xDS stream over Node's HTTP/2 whose client does not read. gRPC's clients would read some messages ahead. */
import type { IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';

const service = '/envoy.service.discovery.v3.AggregatedDiscoveryService';
/** A message's compression flag (0: none) and length. */
const prefixBytes = 5;

export class UnreadStream {
  /** Resolves with the error code when the server resets the stream. */
  readonly reset: Promise<number>;
  /** Resolves with the status when the server ends the stream. */
  readonly trailers: Promise<IncomingHttpHeaders>;
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;

  constructor(port: number, delta = false) {
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#session.on('error', () => {});
    this.#stream = this.#session.request({
      ':method': 'POST',
      ':path': `${service}/${delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources'}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    this.#stream.on('error', () => {});
    this.trailers = new Promise((resolve) => {
      this.#stream.on('trailers', resolve);
    });
    this.reset = new Promise((resolve) => {
      this.#stream.on('close', () => resolve(this.#stream.rstCode ?? constants.NGHTTP2_NO_ERROR));
    });
  }

  get isOver(): boolean {
    return this.#stream.closed;
  }

  /** @returns false if bytes are still buffered */
  send(message: Uint8Array): boolean {
    const prefix = Buffer.alloc(prefixBytes);
    prefix.writeUInt32BE(message.length, 1);
    return this.#stream.write(Buffer.concat([prefix, message]));
  }

  onDrain(listener: () => void): void {
    this.#stream.on('drain', listener);
  }

  /** Starts to read and drop data. */
  read(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#session.destroy();
  }
}
