/** Parses and writes HTTP/2 frames (RFC 9113 §4 and §6) as far as a client with one stream needs them. */

export const frameTypes = { data: 0, headers: 1, resetStream: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 };
export const flags = { ack: 1, endStream: 1, endHeaders: 4, padded: 8 };

const headLength = 9;

export interface FrameHead {
  /** Length of the payload. */
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

export interface FrameListener {
  /** Called with a piece of the data of a DATA frame, which is overwritten afterwards. */
  onData(bytes: Buffer): void;
  /** Called for a complete frame, without the payload of DATA frames. */
  onFrame(head: FrameHead, payload: Buffer): void;
}

export class FrameReader {
  readonly #listener: FrameListener;
  readonly #headBytes = Buffer.alloc(headLength);
  #headRead = 0;
  #head: FrameHead | undefined;
  #remainingBytes = 0;
  /** Length of the padding of a DATA frame; negative before it is read. */
  #padding = 0;
  #payload: Buffer[] = [];

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** Parses the first `length` bytes. @throws Error for unsupported HTTP/2 */
  take(bytes: Buffer, length: number): void {
    let at = 0;
    while (at < length) {
      if (this.#head === undefined) {
        this.#headBytes[this.#headRead++] = bytes[at++]!;
        if (this.#headRead < headLength) continue;
        this.#beginFrame();
      } else {
        const to = Math.min(length, at + this.#remainingBytes);
        this.#takePayload(this.#head, bytes.subarray(at, to));
        at = to;
      }
      if (this.#head !== undefined && this.#remainingBytes === 0) this.#finish(this.#head);
    }
  }

  #beginFrame(): void {
    const head = this.#headBytes;
    this.#head = {
      length: head.readUIntBE(0, 3),
      type: head[3]!,
      flags: head[4]!,
      stream: head.readUInt32BE(5) & 0x7fffffff,
    };
    this.#remainingBytes = this.#head.length;
    this.#padding = this.#head.type === frameTypes.data && (this.#head.flags & flags.padded) !== 0 ? -1 : 0;
  }

  #takePayload(head: FrameHead, bytes: Buffer): void {
    this.#remainingBytes -= bytes.length;
    if (head.type !== frameTypes.data) {
      this.#payload.push(Buffer.from(bytes));
      return;
    }
    // The first byte of a padded frame is the length of the padding at the end.
    const dataStart = this.#padding < 0 ? 1 : 0;
    if (this.#padding < 0) this.#padding = bytes[0]!;
    const data = bytes.length - dataStart - Math.max(0, this.#padding - this.#remainingBytes);
    if (data > 0) this.#listener.onData(bytes.subarray(dataStart, dataStart + data));
  }

  #finish(head: FrameHead): void {
    const payload = this.#payload.length === 1 ? this.#payload[0]! : Buffer.concat(this.#payload);
    this.#payload = [];
    this.#head = undefined;
    this.#headRead = 0;
    this.#listener.onFrame(head, payload);
  }
}

export function frame(type: number, flagBits: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(headLength + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flagBits;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, headLength);
  return bytes;
}

/** Settings of a SETTINGS frame that apply to a sender. */
export function settingsOf(payload: Buffer): { initialWindow?: number; maxFrame?: number } {
  const settings: { initialWindow?: number; maxFrame?: number } = {};
  for (let at = 0; at + 6 <= payload.length; at += 6) {
    const value = payload.readUInt32BE(at + 2);
    if (payload.readUInt16BE(at) === 4) settings.initialWindow = value;
    if (payload.readUInt16BE(at) === 5) settings.maxFrame = value;
  }
  return settings;
}

/** A header block without compression (RFC 7541 §6.2.2); names and values must be shorter than 127 bytes. */
export function literalHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}
