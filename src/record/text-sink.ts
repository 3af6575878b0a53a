/** Passes a trace's text to a function, one call at a time, with a bounded buffer. */
import { messageOf } from '../runtime/errors.ts';
import { formatTraceLine, type TraceLine, type TraceSink } from '../runtime/trace/trace.ts';

/** Receives complete lines. The next call waits for its promise. */
export type WriteText = (text: string) => unknown;

/** Buffer limit for a slow writer, in characters. */
const maxWaiting = 4 * 1024 * 1024;

export class TextSink implements TraceSink {
  readonly #write: WriteText;
  readonly #problem: (message: string) => void;
  #waitingLines: string[] = [];
  #size = 0;
  #lostLines = 0;
  #pendingWrite: Promise<void> | undefined;
  #isScheduled = false;
  #hasFailed = false;

  /** @param problem called once for a writer that fails or is too slow */
  constructor(write: WriteText, problem: (message: string) => void) {
    this.#write = write;
    this.#problem = problem;
  }

  /** Lines dropped because of a full buffer or a failed writer. */
  get lost(): number {
    return this.#lostLines;
  }

  write(line: TraceLine): void {
    const text = formatTraceLine(line);
    // A trace cannot be read without its header.
    if (this.#size + text.length > maxWaiting && line.kind !== 'header') {
      this.#countLostLines(1, 'output is too slow');
      return;
    }
    this.#waitingLines.push(text);
    this.#size += text.length;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Lines of one event loop turn are written together.
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#pendingWrite !== undefined || this.#waitingLines.length === 0) return;
    const lines = this.#waitingLines;
    this.#waitingLines = [];
    this.#size = 0;
    try {
      const writePromise = this.#write(lines.join(''));
      if (!isPromise(writePromise)) return;
      this.#pendingWrite = writePromise
        .then(
          () => {},
          (error: unknown) => this.#countLostLines(lines.length, messageOf(error)),
        )
        .then(() => {
          this.#pendingWrite = undefined;
          this.flush();
        });
    } catch (error) {
      this.#countLostLines(lines.length, messageOf(error));
    }
  }

  close(): void {
    this.flush();
  }

  async waitUntilClosed(): Promise<void> {
    this.flush();
    while (this.#pendingWrite !== undefined) await this.#pendingWrite;
  }

  #countLostLines(lines: number, reason: string): void {
    this.#lostLines += lines;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#problem(`records lost: ${reason}`);
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
