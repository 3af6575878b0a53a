import { ApiError, failureOfStatus, invalidResponse } from '../api-failure.ts';
import { advanceScan, type ObjectScan } from '../store/object-scan.ts';

/** A Kubernetes object has at most 3 MiB (the server's limit of a request), and JSON can encode a byte as six (Go does so for `<`). */
export const maxObjectBytes = 6 * 3 * 1024 * 1024 + 64 * 1024;

const newline = 0x0a;
/** Body of Go's net/http for an unknown path. */
const goNotFoundText = '404 page not found';

export class JsonLines {
  readonly #onLine: (line: unknown) => void;
  readonly #maxBytes: number;
  #lineChunks: Buffer[] = [];
  #bytes = 0;
  #scan: ObjectScan | undefined;

  /** @param onLine receives only metadata for an object that must not be parsed (`excessOf`) */
  constructor(onLine: (line: unknown) => void, maxBytes: number = maxObjectBytes) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  get isIncomplete(): boolean {
    return this.#bytes > 0;
  }

  /**
   * @throws ApiError `invalid` for a line that is too long or not JSON, without the line, which could be a Secret; `status` if the server reports an
   * unknown path
   */
  push(chunk: Buffer): void {
    let start = 0;
    for (let newlineIndex = chunk.indexOf(newline); newlineIndex >= 0; newlineIndex = chunk.indexOf(newline, start)) {
      this.#addLineChunk(chunk.subarray(start, newlineIndex));
      start = newlineIndex + 1;
      this.#endLine();
    }
    // Copied, because HTTP/2 chunks have been overwritten after their event (Node 24.21).
    if (start < chunk.length) this.#addLineChunk(Buffer.from(chunk.subarray(start)));
  }

  #addLineChunk(lineChunk: Buffer): void {
    this.#bytes += lineChunk.length;
    if (this.#bytes > this.#maxBytes) throw invalidResponse(`a line of the watch exceeds ${this.#maxBytes} bytes`);
    this.#lineChunks.push(lineChunk);
    this.#scan = advanceScan(this.#scan, lineChunk, this.#lineChunks, this.#bytes, 1);
  }

  #endLine(): void {
    const [lineChunks, bytes, scan] = [this.#lineChunks, this.#bytes, this.#scan];
    this.#lineChunks = [];
    this.#bytes = 0;
    this.#scan = undefined;
    const line = lineChunks.length === 1 ? lineChunks[0]! : Buffer.concat(lineChunks, bytes);
    if (scan?.excessText !== undefined) {
      this.#onLine({ type: scan.readField(line, 'type'), object: scan.objectIn(line) });
      return;
    }
    const text = line.toString('utf8');
    // kube-apiserver 1.36 sends this body with status 200 for a watch of a kind whose CRD was just created.
    if (text === goNotFoundText) throw new ApiError(failureOfStatus({ message: text }, 404));
    if (text.trim() !== '')
      this.#onLine(parsedJson(text, 'a line of the watch', () => shapeOf(text, lineChunks, bytes)));
  }
}

/**
 * @param shape describes the text without containing it
 * @throws ApiError `invalid`, without Node's message, because that contains a part of the text, which could be a Secret
 */
export function parsedJson(text: string, subject: string, shape?: () => string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidResponse(`${subject} is not valid JSON${shape === undefined ? '' : ` (${shape()})`}`);
  }
}

/** Helps to distinguish a fault of the server from corrupted bytes. */
function shapeOf(text: string, chunks: readonly Buffer[], bytes: number): string {
  const [beginsWithBrace, endsWithBrace] = [text.trimStart().startsWith('{'), text.trimEnd().endsWith('}')];
  const zeroByteCount = text.split('\0').length - 1;
  const replacedCount = text.split('\uFFFD').length - 1;
  const frame = `${beginsWithBrace ? 'begins' : 'does not begin'} with {, ${endsWithBrace ? 'ends' : 'does not end'} with }`;
  return `${bytes} bytes in ${chunks.length} chunks; ${frame}; ${zeroByteCount} NUL characters, ${replacedCount} invalid UTF-8 sequences`;
}
