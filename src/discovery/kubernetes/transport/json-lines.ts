/** Lines of a watch: each is one JSON object, passed on as soon as its end is received. */
import { ApiError, failureOfStatus, invalid } from '../api-failure.ts';
import { type ObjectScan, scanned } from '../store/object-scan.ts';

/**
 * A Kubernetes object has at most 3 MiB (the server's limit of a request), and JSON may write a byte as six, as Go does for `<`. The limit must not
 * be lower: one larger object would prevent all objects of its kind from being read, and any tenant that can create pods could create it.
 */
export const maxObjectBytes = 6 * 3 * 1024 * 1024 + 64 * 1024;

const newline = 0x0a;
/** Body of Go's net/http for an unknown path. */
const goNotFound = '404 page not found';

export class JsonLines {
  readonly #onLine: (line: unknown) => void;
  readonly #maxBytes: number;
  /** Received part of an incomplete line. */
  #parts: Buffer[] = [];
  #bytes = 0;
  #scan: ObjectScan | undefined;

  /** @param onLine receives an object with only metadata if it must not be parsed (`excessOf`) */
  constructor(onLine: (line: unknown) => void, maxBytes: number = maxObjectBytes) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  get isMidway(): boolean {
    return this.#bytes > 0;
  }

  /**
   * @throws ApiError `invalid` for a line that is too long or no JSON; the message does not repeat it, because it may be a Secret. `status` if the
   * server reports an unknown path
   */
  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      this.#addPart(chunk.subarray(from, end));
      from = end + 1;
      this.#endLine();
    }
    // Copied: an HTTP/2 chunk was seen to be overwritten after its event (Node 24.21).
    if (from < chunk.length) this.#addPart(Buffer.from(chunk.subarray(from)));
  }

  #addPart(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) throw invalid(`a line of the watch exceeds ${this.#maxBytes} bytes`);
    this.#parts.push(part);
    this.#scan = scanned(this.#scan, part, this.#parts, this.#bytes, 1);
  }

  #endLine(): void {
    const [parts, bytes, scan] = [this.#parts, this.#bytes, this.#scan];
    this.#parts = [];
    this.#bytes = 0;
    this.#scan = undefined;
    const line = parts.length === 1 ? parts[0]! : Buffer.concat(parts, bytes);
    if (scan?.excess !== undefined) {
      this.#onLine({ type: scan.fieldIn(line, 'type'), object: scan.objectIn(line) });
      return;
    }
    const text = line.toString('utf8');
    // Seen in kube-apiserver 1.36 for a kind that had just been defined, as the body of a watch with status 200.
    if (text === goNotFound) throw new ApiError(failureOfStatus({ message: text }, 404));
    if (text.trim() !== '') this.#onLine(parsedJson(text, 'a line of the watch', () => shapeOf(text, parts, bytes)));
  }
}

/**
 * @param shape describes the text without repeating it
 * @throws ApiError `invalid`. The message of Node would repeat some of the text, which may be a Secret
 */
export function parsedJson(text: string, subject: string, shape?: () => string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(`${subject} is not valid JSON${shape === undefined ? '' : ` (${shape()})`}`);
  }
}

/** Helps to distinguish a line that the server wrote so from one whose bytes were corrupted. */
function shapeOf(text: string, chunks: readonly Buffer[], bytes: number): string {
  const [begins, ends] = [text.trimStart().startsWith('{'), text.trimEnd().endsWith('}')];
  const zeros = text.split('\0').length - 1;
  const unreadable = text.split('\uFFFD').length - 1;
  const frame = `${begins ? 'begins' : 'does not begin'} with {, ${ends ? 'ends' : 'does not end'} with }`;
  return `${bytes} bytes in ${chunks.length} chunks; ${frame}; ${zeros} NUL characters, ${unreadable} invalid UTF-8 sequences`;
}
