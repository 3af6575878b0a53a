/** Passes a trace's text to a function in order, one call at a time, with a bounded buffer. */
import { messageOf } from '../runtime/errors.ts';
import { formatTraceLine, type TraceLine, type TraceSink } from '../runtime/trace/trace.ts';

/** Receives complete lines. The next call waits for its promise. */
export type WriteText = (text: string) => unknown;

/** Buffer limit for a slow writer, in characters. */
const maxWaiting = 4 * 1024 * 1024;

export class TextSink implements TraceSink {
  readonly #write: WriteText;
  readonly #problem: (message: string) => void;
  #waiting: string[] = [];
  #size = 0;
  #lost = 0;
  #busy: Promise<void> | undefined;
  #scheduled = false;
  #hasFailed = false;

  /** @param problem called once for a writer that fails or is too slow */
  constructor(write: WriteText, problem: (message: string) => void) {
    this.#write = write;
    this.#problem = problem;
  }

  /** Lines dropped because of a full buffer or a failed writer. */
  get lost(): number {
    return this.#lost;
  }

  write(line: TraceLine): void {
    const text = formatTraceLine(line);
    // A trace cannot be read without its header.
    if (this.#size + text.length > maxWaiting && line.kind !== 'header') {
      this.#lose(1, 'output is too slow');
      return;
    }
    this.#waiting.push(text);
    this.#size += text.length;
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Lines of one event loop turn are written together.
    queueMicrotask(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#busy !== undefined || this.#waiting.length === 0) return;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    try {
      const written = this.#write(lines.join(''));
      if (!isPromise(written)) return;
      this.#busy = written
        .then(
          () => {},
          (error: unknown) => this.#lose(lines.length, messageOf(error)),
        )
        .then(() => {
          this.#busy = undefined;
          this.flush();
        });
    } catch (error) {
      this.#lose(lines.length, messageOf(error));
    }
  }

  close(): void {
    this.flush();
  }

  async closed(): Promise<void> {
    this.flush();
    while (this.#busy !== undefined) await this.#busy;
  }

  #lose(lines: number, why: string): void {
    this.#lost += lines;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#problem(`records lost: ${why}`);
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
