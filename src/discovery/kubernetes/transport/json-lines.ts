/** The lines of a watch: each is one JSON object, handed over as soon as its end is there. */
import { ApiError, failureOfStatus, invalid } from '../api-failure.ts';
import { type ObjectScan, scanned } from '../store/object-scan.ts';

/**
 * A Kubernetes object has 3 MiB at the most (the server's limit of a request), and JSON writes a byte as six, as Go's does `<`. It is no less:
 * one object beyond it, which anybody may make who may make a pod, would keep all others of its kind from being read.
 */
export const maxObjectBytes = 6 * 3 * 1024 * 1024 + 64 * 1024;

const newline = 0x0a;
/** What Go's net/http writes for an address that nobody serves. */
const goNotFound = '404 page not found';

export class JsonLines {
  readonly #onLine: (line: unknown) => void;
  readonly #maxBytes: number;
  /** What came of a line whose end has not come. */
  #begun: Buffer[] = [];
  #bytes = 0;
  /** Of a long line. */
  #scan: ObjectScan | undefined;

  /** @param onLine is handed an object with nothing but metadata if it must not be parsed (`excessOf`) */
  constructor(onLine: (line: unknown) => void, maxBytes: number = maxObjectBytes) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  /** A line has begun and has not ended. */
  get isMidway(): boolean {
    return this.#bytes > 0;
  }

  /**
   * @throws ApiError `invalid`: a line without end, or one that is no JSON. What it says is not repeated: it may be a Secret; `status`:
   *   the server knows no such address after all
   */
  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      this.#hand();
    }
    // A copy: what a chunk of HTTP/2 is in was seen written over once its event was past (Node 24.21).
    if (from < chunk.length) this.#keep(Buffer.from(chunk.subarray(from)));
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) throw invalid(`a line of the watch exceeds ${this.#maxBytes} bytes`);
    this.#begun.push(part);
    this.#scan = scanned(this.#scan, part, this.#begun, this.#bytes, 1);
  }

  #hand(): void {
    const [begun, bytes, scan] = [this.#begun, this.#bytes, this.#scan];
    this.#begun = [];
    this.#bytes = 0;
    this.#scan = undefined;
    const line = begun.length === 1 ? begun[0]! : Buffer.concat(begun, bytes);
    if (scan?.excess !== undefined) {
      this.#onLine({ type: scan.fieldIn(line, 'type'), object: scan.objectIn(line) });
      return;
    }
    const text = line.toString('utf8');
    // Seen of a kube-apiserver 1.36 whose kind had just been defined, as the body of a watch that it had answered with 200.
    if (text === goNotFound) throw new ApiError(failureOfStatus({ message: text }, 404));
    if (text.trim() !== '') this.#onLine(parsedJson(text, 'a line of the watch', () => shapeOf(text, begun, bytes)));
  }
}

/**
 * @param shape what may be said of the text without repeating any of it
 * @throws ApiError `invalid`. Node's own message repeats some of the text, which may be a Secret
 */
export function parsedJson(text: string, what: string, shape?: () => string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(`${what} is not valid JSON${shape === undefined ? '' : ` (${shape()})`}`);
  }
}

/** Whether a server wrote it so, or its bytes came to harm on their way. */
function shapeOf(text: string, chunks: readonly Buffer[], bytes: number): string {
  const [begins, ends] = [text.trimStart().startsWith('{'), text.trimEnd().endsWith('}')];
  const zeros = text.split('\0').length - 1;
  const unreadable = text.split('\uFFFD').length - 1;
  const frame = `${begins ? 'begins' : 'does not begin'} with {, ${ends ? 'ends' : 'does not end'} with }`;
  return `${bytes} bytes in ${chunks.length} chunks; ${frame}; ${zeros} NUL characters, ${unreadable} invalid UTF-8 sequences`;
}
