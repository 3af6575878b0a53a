import type { IncomingMessage } from 'node:http';
import { addressGroup } from '../../runtime/fences/connection-bounds.ts';

export interface BodyLimits {
  readonly maxBodyBytes: number;
  /** Includes all bodies in progress. */
  readonly maxBytes: number;
  readonly maxBytesPerAddress: number;
}

export type BodyRejection = 413 | 503;

export class BodyBudget {
  readonly #limits: BodyLimits;
  readonly #bytesByAddress = new Map<string, number>();
  #bytes = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @returns `undefined` if the client aborts */
  async read(request: IncomingMessage): Promise<Buffer | BodyRejection | undefined> {
    const address = addressGroup(request.socket.remoteAddress);
    const { maxBodyBytes, maxBytes, maxBytesPerAddress } = this.#limits;
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return 413;
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.#addBytes(address, chunk.length);
        if (bytes > maxBodyBytes) return 413;
        if (this.#bytes > maxBytes || this.#bytesByAddress.get(address)! > maxBytesPerAddress) return 503;
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } catch {
      return undefined;
    } finally {
      this.#addBytes(address, -bytes);
    }
  }

  #addBytes(address: string, bytes: number): void {
    this.#bytes += bytes;
    const bufferedBytes = (this.#bytesByAddress.get(address) ?? 0) + bytes;
    if (bufferedBytes === 0) this.#bytesByAddress.delete(address);
    else this.#bytesByAddress.set(address, bufferedBytes);
  }
}
