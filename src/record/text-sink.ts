/** Hands a trace's text to somebody's function: in order, one call at a time, with a bound on what waits. */
import { messageOf } from '../runtime/errors.ts';
import { formatTraceLine, type TraceLine, type TraceSink } from '../runtime/trace/trace.ts';

/** Takes whole lines. What it returns is waited for before it is called again. */
export type WriteText = (text: string) => unknown;

/** Characters that wait for a slow writer. */
const mostWaiting = 4 * 1024 * 1024;

export class TextSink implements TraceSink {
  readonly #write: WriteText;
  readonly #problem: (message: string) => void;
  #waiting: string[] = [];
  #size = 0;
  #lost = 0;
  #busy: Promise<void> | undefined;
  #scheduled = false;
  #hasFailed = false;

  /** @param problem told once of a writer that fails, or that is too slow */
  constructor(write: WriteText, problem: (message: string) => void) {
    this.#write = write;
    this.#problem = problem;
  }

  /** Lines that were not taken: they were too many, or the writer failed. */
  get lost(): number {
    return this.#lost;
  }

  write(line: TraceLine): void {
    const text = formatTraceLine(line);
    // Without its header nothing of a trace can be read.
    if (this.#size + text.length > mostWaiting && line.kind !== 'header') {
      this.#lose(1, 'output is too slow');
      return;
    }
    this.#waiting.push(text);
    this.#size += text.length;
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Lines of one turn go together.
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
      const answer = this.#write(lines.join(''));
      if (!isPromise(answer)) return;
      this.#busy = answer
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

  /** Resolves when all has been written that will be. */
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
