/**
 * A list is parsed object by object while it arrives: parsing the 69 MB of 10,000 pods together would block the event loop for 0.7 s and take 250 MB.
 */
import { invalidResponse } from '../api-failure.ts';
import { advanceScan, type ObjectScan } from '../store/object-scan.ts';
import { maxObjectBytes, parsedJson } from './json-lines.ts';

/** Text outside the items: a few hundred bytes and a continue token. */
const maxFrameBytes = 64 * 1024;

const [quote, backslash, openBrace, close, openList, closeList] = Buffer.from('"\\{}[]');

export class ListItems {
  readonly #onItem: (item: unknown) => void;
  readonly #maxBytes: number;
  #frame = '';
  #itemParts: Buffer[] = [];
  #bytes = 0;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isInItems = false;
  #scan: ObjectScan | undefined;

  /** @param onItem receives only metadata for an object that must not be parsed (`excessOf`) */
  constructor(onItem: (item: unknown) => void, maxBytes: number = maxObjectBytes) {
    this.#onItem = onItem;
    this.#maxBytes = maxBytes;
  }

  get isIncomplete(): boolean {
    return this.#depth > 0;
  }

  /** @throws ApiError `invalid` */
  push(chunk: Buffer): void {
    let start = 0;
    for (let charIndex = 0; charIndex < chunk.length; charIndex++) {
      const byte = chunk[charIndex];
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#isInText = false;
        continue;
      }
      switch (byte) {
        case quote:
          this.#isInText = true;
          break;
        case openBrace:
        case openList:
          if (this.#isInItems && this.#depth === 2) start = charIndex;
          this.#depth++;
          if (byte === openList && this.#depth === 2 && !this.#isInItems) {
            this.#appendFrame(chunk.subarray(start, charIndex + 1));
            start = charIndex + 1;
            this.#isInItems = /(?<!\\)"items"\s*:\s*\[$/.test(this.#frame.slice(-64));
          }
          break;
        case close:
        case closeList:
          this.#depth--;
          if (!this.#isInItems) break;
          if (this.#depth === 2) {
            this.#appendItem(chunk.subarray(start, charIndex + 1));
            this.#endItem();
            start = charIndex + 1;
          } else if (this.#depth === 1) {
            this.#isInItems = false;
            start = charIndex;
          }
          break;
      }
    }
    const remainingBytes = chunk.subarray(start);
    if (!this.#isInItems) this.#appendFrame(remainingBytes);
    // Copied as in json-lines.ts, because the chunk may be overwritten after its event.
    else if (this.#depth > 2) this.#appendItem(Buffer.from(remainingBytes));
  }

  /** @throws ApiError `invalid` if the list is incomplete or not JSON */
  finish(): unknown {
    return parsedJson(this.#frame, 'the list');
  }

  #appendFrame(bytesPart: Buffer): void {
    this.#frame += bytesPart.toString('latin1');
    if (this.#frame.length > maxFrameBytes)
      throw invalidResponse(`the list has more than ${maxFrameBytes} bytes besides its items`);
  }

  #appendItem(bytesPart: Buffer): void {
    this.#bytes += bytesPart.length;
    if (this.#bytes > this.#maxBytes) throw invalidResponse(`an object in the list exceeds ${this.#maxBytes} bytes`);
    this.#itemParts.push(bytesPart);
    this.#scan = advanceScan(this.#scan, bytesPart, this.#itemParts, this.#bytes, 0);
  }

  #endItem(): void {
    const [item, scan] = [Buffer.concat(this.#itemParts, this.#bytes), this.#scan];
    this.#itemParts = [];
    this.#bytes = 0;
    this.#scan = undefined;
    if (scan?.excessText !== undefined) this.#onItem(scan.objectIn(item));
    else this.#onItem(parsedJson(item.toString('utf8'), 'an object in the list'));
  }
}
