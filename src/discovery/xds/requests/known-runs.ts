/**
 * Requests that repeat a long list of names, put together without it. A state-of-the-world client says all names of its endpoints
 * with each acknowledgement, 60 KB for a thousand: to join what came in pieces, for five hundred clients at once, was garbage of
 * 30 MB. What comes is compared with what was said before, piece by piece, and of a list that is the same nothing is kept.
 */
import type { WireNames } from './request-names.ts';

/** grpc-js' own: takes pieces of HTTP/2, gives whole messages, each with its prefix of five bytes. */
export interface MessageDecoder {
  write(data: Buffer): Buffer[];
}

/** Tag of a DiscoveryRequest's `resource_names`. */
const namesTag = 0x1a;
/** Wire type, the lowest three bits of a field's key, of a field with a length before its content. */
const lengthDelimited = 2;
const prefixBytes = 5;
/** Lists that are shorter come in one piece, mostly. */
const leastBytes = 8 * 1024;
/** A type and a nonce come after the names, and no more. */
const mostTailBytes = 4 * 1024;

const omitted = new WeakMap<ArrayBufferLike, WireNames>();

/** The names that belong to a message and are not in its bytes. */
export function omittedFrom(message: Uint8Array): WireNames | undefined {
  return omitted.get(message.buffer);
}

/** A message whose list of names is the same as one before, as far as it has come. */
interface Run {
  /** What came before the names, with the message's prefix. */
  readonly head: Buffer;
  readonly names: WireNames;
  /** Bytes of the names that have come. */
  at: number;
  /** What comes after them. */
  readonly tail: Buffer;
  tailAt: number;
}

/** Stands before grpc-js' decoder: what is no such message it is given as it came. */
export class KnownRuns implements MessageDecoder {
  readonly #decoder: MessageDecoder;
  readonly #said: () => Iterable<WireNames>;
  readonly #isAtRest: () => boolean;
  #run: Run | undefined;

  /**
   * @param said the lists that may be repeated
   * @param isAtRest whether the decoder waits for the beginning of a message
   */
  constructor(decoder: MessageDecoder, said: () => Iterable<WireNames>, isAtRest: () => boolean) {
    this.#decoder = decoder;
    this.#said = said;
    this.#isAtRest = isAtRest;
  }

  write(data: Buffer): Buffer[] {
    if (this.#run === undefined) {
      this.#run = this.#isAtRest() ? begunRun(data, this.#said()) : undefined;
      if (this.#run === undefined) return this.#decoder.write(data);
      return this.#goOn(this.#run, data, this.#run.head.length);
    }
    return this.#goOn(this.#run, data, 0);
  }

  #goOn(run: Run, data: Buffer, start: number): Buffer[] {
    const { names, tail } = run;
    const { bytes } = names;
    const now = Math.min(bytes.length - run.at, data.length - start);
    if (Buffer.compare(bytes.subarray(run.at, run.at + now), data.subarray(start, start + now)) !== 0)
      return this.#giveBack(run, data.subarray(start));
    run.at += now;
    const rest = data.subarray(start + now, start + now + tail.length - run.tailAt);
    // The list goes on: it is another one.
    if (run.tailAt === 0 && rest[0] === namesTag) return this.#giveBack(run, data.subarray(start + now));
    run.tailAt += rest.copy(tail, run.tailAt);
    if (run.at < bytes.length || run.tailAt < tail.length) return [];
    this.#run = undefined;
    const message = Buffer.allocUnsafeSlow(run.head.length + tail.length);
    message.set(run.head);
    message.set(tail, run.head.length);
    omitted.set(message.buffer, names);
    const more = data.subarray(start + now + rest.length);
    return more.length === 0 ? [message] : [message, ...this.write(more)];
  }

  /** The run turned out to be another one, which is seen before anything has come after the names. */
  #giveBack({ head, names, at }: Run, more: Buffer): Buffer[] {
    this.#run = undefined;
    const known = names.bytes.subarray(0, at);
    this.#decoder.write(head);
    // The decoder keeps parts of what it is given, until the message is there.
    this.#decoder.write(Buffer.from(known.buffer, known.byteOffset, known.byteLength));
    return this.#decoder.write(more);
  }
}

/** A message begins here whose names are, as far as they have come, those that were said before. */
function begunRun(data: Buffer, said: Iterable<WireNames>): Run | undefined {
  if (data.length <= prefixBytes || data[0] !== 0) return undefined;
  const length = data.readUInt32BE(1);
  if (length < leastBytes) return undefined;
  const start = startOfNames(data);
  if (start === undefined) return undefined;
  for (const names of said) {
    const { bytes } = names;
    const tailBytes = prefixBytes + length - start - bytes.length;
    if (bytes.length < leastBytes || tailBytes < 0 || tailBytes > mostTailBytes) continue;
    const come = Math.min(bytes.length, data.length - start);
    if (Buffer.compare(bytes.subarray(0, come), data.subarray(start, start + come)) !== 0) continue;
    const head = Buffer.from(data.subarray(0, start));
    return { head, names, at: 0, tail: Buffer.alloc(tailBytes), tailAt: 0 };
  }
  return undefined;
}

/** Where a message's names start; undefined: not within what has come, or after something that is no ordinary field. */
function startOfNames(data: Buffer): number | undefined {
  let at = prefixBytes;
  while (at < data.length) {
    const tag = data[at]!;
    if (tag === namesTag) return at;
    if ((tag & 7) !== lengthDelimited || tag >= 0x80) return undefined;
    at++;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = data[at++];
      if (byte === undefined || shift > 21) return undefined;
      length += (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    at += length;
  }
  return undefined;
}
