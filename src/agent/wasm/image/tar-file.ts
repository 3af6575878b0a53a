/** Supports POSIX.1-1988 ustar, with long names and sizes of GNU and pax. */

export interface TarLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

const blockBytes = 512;
/** Limits long names and pax headers. */
const maxHeaderBytes = 64 * 1024;

interface Entry {
  readonly name: string;
  readonly size: number;
  readonly type: string;
}

/**
 * Yields the first regular file with this name, in any folder, and reads the archive to its end.
 *
 * @throws Error if there is no such file, or the archive is damaged or exceeds a limit
 */
export async function* tarFile(
  archive: AsyncIterable<Uint8Array>,
  fileName: string,
  limits: TarLimits,
): AsyncGenerator<Uint8Array> {
  const bytes = new ArchiveBytes(archive, limits.maxBytes);
  let overrides: Partial<Pick<Entry, 'name' | 'size'>> = {};
  let isFound = false;
  for (let entries = 0; ; entries++) {
    if (entries > limits.maxEntries) throw new Error(`archive has more than ${limits.maxEntries} entries`);
    const header = await bytes.read(blockBytes);
    // An archive ends with zero blocks, which some writers omit.
    if (header === undefined || header.every((byte) => byte === 0)) break;
    const { name, size, type } = { ...entryOf(header), ...overrides };
    const padding = (blockBytes - (size % blockBytes)) % blockBytes;
    if (type === 'L' || type === 'x') {
      if (size > maxHeaderBytes) throw new Error(`header of an entry is longer than ${maxHeaderBytes} bytes`);
      const content = await bytes.read(size);
      if (content === undefined) throw new Error('archive ends within an entry');
      overrides = type === 'L' ? { ...overrides, name: textOf(content) } : { ...overrides, ...paxFields(content) };
      await bytes.skip(padding);
      continue;
    }
    overrides = {};
    const isFile = type === '0' || type === '\0' || type === '7';
    if (!isFound && isFile && name.slice(name.lastIndexOf('/') + 1) === fileName) {
      isFound = true;
      yield* bytes.readChunks(size);
      await bytes.skip(padding);
    } else await bytes.skip(size + padding);
  }
  await bytes.drain();
  if (!isFound) throw new Error(`archive has no file ${fileName}`);
}

/** Links, devices, directories and pipes have no content, whatever their size field. */
const typesWithoutContent: ReadonlySet<string> = new Set(['1', '2', '3', '4', '5', '6']);

/** @throws Error if the checksum is wrong */
function entryOf(header: Buffer): Entry {
  const checksum = header.reduce((total, byte, offset) => total + (offset >= 148 && offset < 156 ? 0x20 : byte), 0);
  if (parseNumber(header.subarray(148, 156)) !== checksum)
    throw new Error('not a tar archive: wrong checksum of a header');
  const prefix = header.subarray(257, 262).toString('latin1') === 'ustar' ? textOf(header.subarray(345, 500)) : '';
  const name = textOf(header.subarray(0, 100));
  const type = String.fromCharCode(header[156]!);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size: typesWithoutContent.has(type) ? 0 : parseNumber(header.subarray(124, 136)),
    type,
  };
}

/** Octal digits, or the base-256 form of GNU. */
function parseNumber(field: Buffer): number {
  const isBinary = (field[0]! & 0x80) !== 0;
  const value = isBinary
    ? field.subarray(1).reduce((total, byte) => total * 256 + byte, field[0]! & 0x7f)
    : Number.parseInt(`0${textOf(field).trim()}`, 8);
  if (!Number.isSafeInteger(value)) throw new Error('archive has an invalid number in a header');
  return value;
}

function textOf(field: Buffer): string {
  const endIndex = field.indexOf(0);
  return field.subarray(0, endIndex < 0 ? field.length : endIndex).toString('utf8');
}

/** Records `LENGTH KEY=VALUE\n`. */
function paxFields(content: Buffer): Partial<Pick<Entry, 'name' | 'size'>> {
  let fields: Partial<Pick<Entry, 'name' | 'size'>> = {};
  for (let offset = 0; offset < content.length; ) {
    const space = content.indexOf(0x20, offset);
    const length = space < 0 ? Number.NaN : Number(content.subarray(offset, space).toString('latin1'));
    if (!Number.isInteger(length) || length <= space - offset || offset + length > content.length) break;
    const [key, ...value] = content
      .subarray(space + 1, offset + length - 1)
      .toString('utf8')
      .split('=');
    if (key === 'path') fields = { ...fields, name: value.join('=') };
    if (key === 'size' && /^\d{1,15}$/.test(value.join('='))) fields = { ...fields, size: Number(value[0]) };
    offset += length;
  }
  return fields;
}

class ArchiveBytes {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #maxBytes: number;
  #bufferedBytes: Buffer = Buffer.alloc(0);
  #receivedBytes = 0;

  constructor(archive: AsyncIterable<Uint8Array>, maxBytes: number) {
    this.#source = archive[Symbol.asyncIterator]();
    this.#maxBytes = maxBytes;
  }

  async read(bytes: number): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let remainingBytes = bytes;
    while (remainingBytes > 0) {
      const chunk = await this.#nextChunk(remainingBytes);
      if (chunk === undefined) {
        if (remainingBytes === bytes) return undefined;
        throw new Error('archive ends within an entry');
      }
      chunks.push(chunk);
      remainingBytes -= chunk.length;
    }
    return Buffer.concat(chunks);
  }

  async *readChunks(bytes: number): AsyncGenerator<Buffer> {
    for (let remainingBytes = bytes; remainingBytes > 0; ) {
      const chunk = await this.#nextChunk(remainingBytes);
      if (chunk === undefined) throw new Error('archive ends within an entry');
      remainingBytes -= chunk.length;
      yield chunk;
    }
  }

  async skip(bytes: number): Promise<void> {
    for await (const _ of this.readChunks(bytes));
  }

  async drain(): Promise<void> {
    while ((await this.#nextChunk(Number.MAX_SAFE_INTEGER)) !== undefined);
  }

  async #nextChunk(maxBytes: number): Promise<Buffer | undefined> {
    while (this.#bufferedBytes.length === 0) {
      const { done, value } = await this.#source.next();
      if (done === true) return undefined;
      this.#receivedBytes += value.length;
      if (this.#receivedBytes > this.#maxBytes)
        throw new Error(`archive is larger than the limit of ${this.#maxBytes} bytes`);
      this.#bufferedBytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const chunk = this.#bufferedBytes.subarray(0, maxBytes);
    this.#bufferedBytes = this.#bufferedBytes.subarray(chunk.length);
    return chunk;
  }
}
