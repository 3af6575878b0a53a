/** Each DNS message over TCP is preceded by its length (RFC 1035 §4.2.2). */

export const maxTcpBytes = 65_535;

export function frameMessage(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(2 + message.length);
  frame.writeUInt16BE(message.length, 0);
  message.copy(frame, 2);
  return frame;
}

/** Buffers at most one incomplete message, of at most 64 KiB. */
export class TcpMessages {
  #buffered: Buffer = Buffer.alloc(0);

  /** Length of the incomplete message without its prefix; 0 if the length has not been received. */
  get announcedBytes(): number {
    return this.#buffered.length < 2 ? 0 : this.#buffered.readUInt16BE(0);
  }

  push(chunk: Buffer): Buffer[] {
    let unreadBytes = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    const messages: Buffer[] = [];
    while (unreadBytes.length >= 2 && unreadBytes.length >= 2 + unreadBytes.readUInt16BE(0)) {
      const end = 2 + unreadBytes.readUInt16BE(0);
      messages.push(unreadBytes.subarray(2, end));
      unreadBytes = unreadBytes.subarray(end);
    }
    // A slice of a few bytes would keep the entire chunk in memory.
    this.#buffered = Buffer.from(unreadBytes);
    return messages;
  }
}
