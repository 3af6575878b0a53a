/**
 * Assembles requests without a long list of repeated names. A SotW client sends all names of its endpoints with each ACK, 60 KB for a thousand names.
 */
import type { WireNames } from './request-names.ts';

/** Interface of grpc-js' decoder: takes HTTP/2 data, returns messages with their five-byte prefix. */
export interface MessageDecoder {
  write(data: Buffer): Buffer[];
}

/** Tag of `resource_names` in a DiscoveryRequest. */
const namesTag = 0x1a;
/** A wire type is the lowest three bits of a tag. */
const lengthDelimited = 2;
const prefixBytes = 5;
/** Shorter lists usually arrive in one piece. */
const minListBytes = 8 * 1024;
/** Only type and nonce come after the names. */
const maxTailBytes = 4 * 1024;

const omittedRuns = new WeakMap<ArrayBufferLike, WireNames>();

export function omittedFrom(message: Uint8Array): WireNames | undefined {
  return omittedRuns.get(message.buffer);
}

/** A message whose names so far are equal to a previous list. */
interface KnownRun {
  /** Bytes before the names, including the message's prefix. */
  readonly head: Buffer;
  readonly names: WireNames;
  receivedNameBytes: number;
  readonly tail: Buffer;
  tailAt: number;
}

export class KnownRuns implements MessageDecoder {
  readonly #decoder: MessageDecoder;
  readonly #lists: () => Iterable<WireNames>;
  readonly #isIdle: () => boolean;
  #run: KnownRun | undefined;

  /**
   * @param lists returns lists that may be repeated
   * @param isIdle whether the decoder expects the start of a message
   */
  constructor(decoder: MessageDecoder, lists: () => Iterable<WireNames>, isIdle: () => boolean) {
    this.#decoder = decoder;
    this.#lists = lists;
    this.#isIdle = isIdle;
  }

  write(data: Buffer): Buffer[] {
    if (this.#run === undefined) {
      this.#run = this.#isIdle() ? startRun(data, this.#lists()) : undefined;
      if (this.#run === undefined) return this.#decoder.write(data);
      return this.#continueRun(this.#run, data, this.#run.head.length);
    }
    return this.#continueRun(this.#run, data, 0);
  }

  #continueRun(run: KnownRun, data: Buffer, start: number): Buffer[] {
    const { names, tail } = run;
    const { bytes } = names;
    const newNameBytes = Math.min(bytes.length - run.receivedNameBytes, data.length - start);
    if (
      Buffer.compare(
        bytes.subarray(run.receivedNameBytes, run.receivedNameBytes + newNameBytes),
        data.subarray(start, start + newNameBytes),
      ) !== 0
    )
      return this.#forwardRun(run, data.subarray(start));
    run.receivedNameBytes += newNameBytes;
    const tailData = data.subarray(start + newNameBytes, start + newNameBytes + tail.length - run.tailAt);
    // More names follow, so the list differs.
    if (run.tailAt === 0 && tailData[0] === namesTag) return this.#forwardRun(run, data.subarray(start + newNameBytes));
    run.tailAt += tailData.copy(tail, run.tailAt);
    if (run.receivedNameBytes < bytes.length || run.tailAt < tail.length) return [];
    this.#run = undefined;
    const message = Buffer.allocUnsafeSlow(run.head.length + tail.length);
    message.set(run.head);
    message.set(tail, run.head.length);
    omittedRuns.set(message.buffer, names);
    const laterBytes = data.subarray(start + newNameBytes + tailData.length);
    return laterBytes.length === 0 ? [message] : [message, ...this.write(laterBytes)];
  }

  #forwardRun({ head, names, receivedNameBytes }: KnownRun, laterBytes: Buffer): Buffer[] {
    this.#run = undefined;
    const repeatedBytes = names.bytes.subarray(0, receivedNameBytes);
    this.#decoder.write(head);
    // Passes a separate view, because the decoder keeps parts until the message is complete.
    this.#decoder.write(Buffer.from(repeatedBytes.buffer, repeatedBytes.byteOffset, repeatedBytes.byteLength));
    return this.#decoder.write(laterBytes);
  }
}

/** Detects a message that starts here and repeats a list. */
function startRun(data: Buffer, lists: Iterable<WireNames>): KnownRun | undefined {
  if (data.length <= prefixBytes || data[0] !== 0) return undefined;
  const length = data.readUInt32BE(1);
  if (length < minListBytes) return undefined;
  const start = startOfNames(data);
  if (start === undefined) return undefined;
  for (const names of lists) {
    const { bytes } = names;
    const tailBytes = prefixBytes + length - start - bytes.length;
    if (bytes.length < minListBytes || tailBytes < 0 || tailBytes > maxTailBytes) continue;
    const receivedBytes = Math.min(bytes.length, data.length - start);
    if (Buffer.compare(bytes.subarray(0, receivedBytes), data.subarray(start, start + receivedBytes)) !== 0) continue;
    const headBytes = Buffer.from(data.subarray(0, start));
    return { head: headBytes, names, receivedNameBytes: 0, tail: Buffer.alloc(tailBytes), tailAt: 0 };
  }
  return undefined;
}

/** `undefined` if the names have not arrived or come after an unusual field. */
function startOfNames(data: Buffer): number | undefined {
  let offset = prefixBytes;
  while (offset < data.length) {
    const tag = data[offset]!;
    if (tag === namesTag) return offset;
    if ((tag & 7) !== lengthDelimited || tag >= 0x80) return undefined;
    offset++;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = data[offset++];
      if (byte === undefined || shift > 21) return undefined;
      length += (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    offset += length;
  }
  return undefined;
}
