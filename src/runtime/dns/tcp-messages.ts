/** DNS messages over TCP and TLS: each is preceded by its length (RFC 1035 §4.2.2). */

/** Bytes of the longest message that the length can express. */
export const maxTcpBytes = 65_535;

export function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(2 + message.length);
  frame.writeUInt16BE(message.length, 0);
  message.copy(frame, 2);
  return frame;
}

/** Splits received bytes into messages and buffers an incomplete one, of at most 64 KiB. */
export class TcpMessages {
  #rest: Buffer = Buffer.alloc(0);

  /** Length of the incomplete message in bytes, without its prefix; 0 if the length has not been received. */
  get announcedBytes(): number {
    return this.#rest.length < 2 ? 0 : this.#rest.readUInt16BE(0);
  }

  push(chunk: Buffer): Buffer[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const end = 2 + rest.readUInt16BE(0);
      messages.push(rest.subarray(2, end));
      rest = rest.subarray(end);
    }
    // A slice of a few bytes would keep the entire chunk in memory.
    this.#rest = Buffer.from(rest);
    return messages;
  }
}
