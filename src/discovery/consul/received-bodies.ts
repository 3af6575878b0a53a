/** Servers cannot exhaust the memory, because the size of each body and of all bodies together is limited. */

/** A list of 10,000 services takes 0.7 MB, as do the services of a node with 1,000 instances. */
export const maxResponseBytes = 32 * 1024 * 1024;
export const maxReceivingBytes = 4 * maxResponseBytes;
/** Parsing 32 MiB of brackets takes several seconds and more than a gigabyte. */
export const maxValues = 2_000_000;

/** Contains 1 for each byte after which a JSON value can begin. */
const separators = new Uint8Array(256);
for (const byte of Buffer.from('[{,')) separators[byte] = 1;

export class ReceivedBodies {
  #bytes = 0;

  begin(): ReceivedBody {
    return new ReceivedBody((bytes) => {
      this.#bytes += bytes;
      if (this.#bytes > maxReceivingBytes)
        throw new Error(`responses that are being received exceed ${maxReceivingBytes} bytes`);
    });
  }
}

export class ReceivedBody {
  readonly #count: (bytes: number) => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #values = 0;

  constructor(count: (bytes: number) => void) {
    this.#count = count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws Error if the body exceeds a limit */
  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    this.#count(chunk.length);
    if (this.#bytes > maxResponseBytes) throw new Error(`response exceeds ${maxResponseBytes} bytes`);
    for (let byteIndex = 0; byteIndex < chunk.length; byteIndex++) this.#values += separators[chunk[byteIndex]!]!;
    if (this.#values > maxValues) throw new Error(`response has more than ${maxValues} values`);
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** Must be called once, after the body was read or the request failed. */
  release(): void {
    this.#count(-this.#bytes);
    this.#chunks.length = 0;
  }
}
