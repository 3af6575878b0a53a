/**
 * Queues lines for a log, a trace, or a reader of standard output. No write waits or throws, whatever the outlet does.
 *
 * Lines that the outlet does not accept are queued up to a limit. Beyond the limit, lines are lost and counted. Output of commands ({@link
 * LineSink.print}) is queued without a limit and never lost.
 *
 * Terminals display this output, so control and invisible characters of all text are escaped (`visible-text.ts`).
 */
import { isSystemError, messageOf } from '../errors.ts';
import { visibleBytes } from '../visible-bytes.ts';
import { visibleText } from '../visible-text.ts';
import type { Outlet } from './outlet.ts';

export interface LineLoss {
  readonly lines: number;
  readonly from: Date;
  readonly to: Date;
  readonly why: string;
}

export interface SinkLines {
  readonly lost: number;
  /** Queued lines; lost if the program ends before they are written. */
  readonly waiting: number;
}

/** A simulation has its own clock. */
export interface SinkClock {
  /** Monotonic milliseconds. */
  now(): number;
  /** @param keepsAlive whether the timer keeps the process alive. @returns function that cancels the timer */
  after(ms: number, fire: () => void, keepsAlive: boolean): () => void;
}

export interface LineSinkOptions {
  /** @throws while the outlet cannot be opened */
  readonly open: () => Outlet;
  readonly clock?: SinkClock;
  /** Maximum bytes of queued lines (default 1 MiB). */
  readonly maxBytes?: number;
  /** A new file starts with this header. Lines queued for the previous file are then lost, so the header must contain their information. */
  readonly begin?: () => string;
}

/** Receives the failures of a sink. Must not throw. */
export interface SinkListener {
  /** First failure of the output. `printing`: output of a command is queued. */
  failed?(error: unknown, printing: boolean): void;
  /**
   * The queue is empty again after a failure, after a loss, or both. Lines written by this handler replace the lost
   * ones.
   */
  recovered?(loss: LineLoss | undefined): void;
}

const maxBytesDefault = 1024 * 1024;
/** Polling interval for a blocked reader, doubled while it stays blocked. */
const minPollMs = 1;
const maxPollMs = 50;
/** An outlet that failed is reopened after this delay, doubled with each failure. */
const minBackOffMs = 100;
const maxBackOffMs = 10_000;
/** The delay is reset after this time without a failure. */
const resetBackOffAfterMs = 10_000;

const programClock: SinkClock = {
  now: () => performance.now(),
  after(ms, fire, keepsAlive) {
    const timer = setTimeout(fire, ms);
    if (!keepsAlive) timer.unref();
    return () => clearTimeout(timer);
  },
};

const slowReader = 'its reader did not keep up';

interface QueuedBytes {
  readonly bytes: Buffer;
  /** A header is not counted as a line. */
  readonly isHeader?: true;
}

export class LineSink {
  readonly #options: LineSinkOptions;
  readonly #maxBytes: number;
  readonly #clock: SinkClock;
  readonly #listeners: SinkListener[] = [];
  #outlet: Outlet | undefined;
  #id: string | undefined;
  #waitingLines: QueuedBytes[] = [];
  #currentBatch: QueuedBytes | undefined;
  #offset = 0;
  #waitingBytes = 0;
  #isPrinting = false;
  /** Whether a wait timed out or lines were lost since the queue was last empty. */
  #isBackPressured = false;
  #loss: LineLoss | undefined;
  #lostLines = 0;
  #failure: unknown;
  #backOffMs = minBackOffMs;
  #failedAt = Number.NEGATIVE_INFINITY;
  #pollMs = minPollMs;
  #lastAttemptAt = Number.NEGATIVE_INFINITY;
  #cancelAttempt: (() => void) | undefined;
  #pendingEmpty: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(options: LineSinkOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? maxBytesDefault;
    this.#clock = options.clock ?? programClock;
  }

  get lost(): number {
    return this.#lostLines;
  }

  get lines(): SinkLines {
    const current = this.#currentBatch?.bytes.subarray(this.#offset);
    const queuedChunks = [...(current === undefined ? [] : [current]), ...this.#waitingLines.map(({ bytes }) => bytes)];
    return { lost: this.#lostLines, waiting: queuedChunks.reduce((sum, bytes) => sum + linesIn(bytes), 0) };
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  listen(listener: SinkListener): void {
    this.#listeners.push(listener);
  }

  get isFile(): boolean {
    return this.#outlet !== undefined && this.#outlet.id !== '';
  }

  get hasFileMoved(): boolean {
    return this.#outlet?.isMoved() === true;
  }

  write(lines: string | Buffer): void {
    this.#closeMovedFile();
    const bytes = typeof lines === 'string' ? Buffer.from(visibleText(lines)) : visibleBytes(lines);
    const isWithinLimit = this.#waitingBytes === 0 || this.#waitingBytes + bytes.length <= this.#maxBytes;
    if (this.#loss === undefined && isWithinLimit) this.#add({ bytes });
    else this.#countLostLines(linesIn(bytes));
    this.#drainUnlessRetryScheduled();
  }

  print(text: string): void {
    this.#isPrinting = true;
    this.#add({ bytes: Buffer.from(visibleText(text)) });
    this.#drainUnlessRetryScheduled();
  }

  /** Resolves when the queue is empty. A command with much output waits for it between writes. */
  waitUntilEmpty(): Promise<void> {
    if (this.#waitingBytes === 0) return Promise.resolve();
    this.#pendingEmpty ??= Promise.withResolvers<void>();
    return this.#pendingEmpty.promise;
  }

  /**
   * Lets a writer wait a limited time instead of losing lines to a slow reader. Returns `undefined` if there is space, or if the reader is too slow
   * to wait for it.
   */
  waitForSpace(limitMs: number): Promise<void> | undefined {
    if (this.#isBackPressured || this.#waitingBytes < this.#maxBytes / 2) return undefined;
    return new Promise((resolve) => {
      const cancelTimeout = this.#clock.after(
        limitMs,
        () => {
          this.#isBackPressured = true;
          resolve();
        },
        true,
      );
      void this.waitUntilEmpty().then(() => {
        cancelTimeout();
        resolve();
      });
    });
  }

  startNewFile(): void {
    this.#close();
    this.#id = undefined;
    this.write('');
  }

  close(): void {
    this.#drain();
    this.#clearAttempt();
    this.#close();
  }

  /** Resolves when the queue is empty, cannot be written, or at the limit. */
  async end(limitMs: number): Promise<void> {
    const deadline = this.#clock.now() + limitMs;
    for (this.#drain(); this.#waitingBytes > 0 && this.#failure === undefined; this.#drain()) {
      if (!this.#isPrinting && this.#clock.now() >= deadline) return;
      await new Promise<void>((resolve) => void this.#clock.after(this.#pollMs, resolve, true));
    }
  }

  #add(line: QueuedBytes): void {
    if (line.bytes.length === 0) return;
    this.#waitingLines.push(line);
    this.#waitingBytes += line.bytes.length;
  }

  #countLostLines(lines: number): void {
    const to = new Date();
    const { lines: previousLines, from, why } = this.#loss ?? { lines: 0, from: to, why: this.#failureReason() };
    this.#loss = { lines: previousLines + lines, from, to, why };
    this.#isBackPressured = true;
    this.#lostLines += lines;
  }

  #failureReason(): string {
    return this.#failure === undefined ? slowReader : messageOf(this.#failure);
  }

  #closeMovedFile(): void {
    if (this.#waitingBytes > 0) return;
    try {
      if (this.hasFileMoved) this.#close();
      if (this.#failure === undefined) this.#ensureOutlet();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** While the timer runs, it drains the queue, but a long turn of the event loop must not delay a fast reader. */
  #drainUnlessRetryScheduled(): void {
    if (this.#cancelAttempt === undefined) this.#drain();
    else if (this.#failure === undefined && this.#clock.now() - this.#lastAttemptAt >= minPollMs) this.#drain();
  }

  #drain(): void {
    this.#clearAttempt();
    try {
      while (this.#waitingBytes > 0) {
        const outlet = this.#ensureOutlet();
        const current = this.#nextBatch(outlet.maxWriteBytes);
        if (current === undefined) break;
        const writtenBytes = outlet.write(current.bytes.subarray(this.#offset));
        this.#lastAttemptAt = this.#clock.now();
        if (writtenBytes === 0) {
          this.#waitForSpace();
          return;
        }
        this.#recordWrittenBytes(writtenBytes);
      }
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#onQueueEmpty();
  }

  #recordWrittenBytes(bytes: number): void {
    this.#pollMs = minPollMs;
    this.#offset += bytes;
    this.#waitingBytes -= bytes;
    if (this.#offset < this.#currentBatch!.bytes.length) return;
    this.#currentBatch = undefined;
    this.#offset = 0;
  }

  /** The next batch contains as many lines as one write may take, at least one. */
  #nextBatch(maxBytes: number): QueuedBytes | undefined {
    if (this.#currentBatch !== undefined) return this.#currentBatch;
    let count = 0;
    let bytes = 0;
    for (const line of this.#waitingLines) {
      if (count > 0 && bytes + line.bytes.length > maxBytes) break;
      bytes += line.bytes.length;
      count++;
      if (line.isHeader) break;
    }
    const mergedLines = this.#waitingLines.splice(0, count);
    this.#offset = 0;
    this.#currentBatch =
      mergedLines.length <= 1 ? mergedLines[0] : { bytes: Buffer.concat(mergedLines.map((line) => line.bytes)) };
    return this.#currentBatch;
  }

  #scheduleAttempt(ms: number, keepsAlive: boolean): void {
    this.#clearAttempt();
    this.#cancelAttempt = this.#clock.after(ms, () => this.#drain(), keepsAlive);
  }

  #clearAttempt(): void {
    this.#cancelAttempt?.();
    this.#cancelAttempt = undefined;
  }

  #waitForSpace(): void {
    this.#scheduleAttempt(this.#pollMs, true);
    this.#pollMs = Math.min(2 * this.#pollMs, maxPollMs);
  }

  #fail(error: unknown): void {
    this.#close();
    const isNewFailure = this.#failure === undefined;
    this.#failure = error;
    const now = this.#clock.now();
    if (now - this.#failedAt > this.#backOffMs + resetBackOffAfterMs) this.#backOffMs = minBackOffMs;
    this.#failedAt = now;
    // A disk that is full does not keep the process alive.
    this.#scheduleAttempt(this.#backOffMs, false);
    this.#backOffMs = Math.min(2 * this.#backOffMs, maxBackOffMs);
    if (isNewFailure) for (const listener of this.#listeners) listener.failed?.(error, this.#isPrinting);
  }

  #onQueueEmpty(): void {
    // Without a write it is unknown whether the outlet works again.
    if (this.#failure !== undefined && this.#outlet === undefined) return;
    this.#isPrinting = false;
    this.#isBackPressured = false;
    this.#pendingEmpty?.resolve();
    this.#pendingEmpty = undefined;
    if (this.#failure === undefined && this.#loss === undefined) return;
    const loss = this.#loss;
    this.#failure = undefined;
    this.#loss = undefined;
    for (const listener of this.#listeners) listener.recovered?.(loss);
  }

  #ensureOutlet(): Outlet {
    if (this.#outlet !== undefined) return this.#outlet;
    this.#outlet = this.#options.open();
    const { id, isEmpty } = this.#outlet;
    if (id !== this.#id || isEmpty) {
      this.#id = id;
      this.#startFile();
    }
    return this.#outlet;
  }

  #startFile(): void {
    if (this.#options.begin === undefined) {
      this.#startWithCompleteLine();
      return;
    }
    const current =
      this.#currentBatch === undefined
        ? []
        : [{ ...this.#currentBatch, bytes: this.#currentBatch.bytes.subarray(this.#offset) }];
    const lines = [...current, ...this.#waitingLines]
      .filter(({ isHeader }) => isHeader === undefined)
      .reduce((sum, { bytes }) => sum + linesIn(bytes), 0);
    if (lines > 0) this.#countLostLines(lines);
    this.#waitingLines = [];
    this.#waitingBytes = 0;
    this.#currentBatch = undefined;
    this.#add({ bytes: Buffer.from(visibleText(this.#options.begin())), isHeader: true });
  }

  /** Half of the line is in the previous file, so it is written again from its start. */
  #startWithCompleteLine(): void {
    if (this.#currentBatch === undefined || this.#offset === 0) return;
    const lineStart = this.#currentBatch.bytes.lastIndexOf('\n', this.#offset - 1) + 1;
    this.#waitingBytes += this.#offset - lineStart;
    this.#offset = lineStart;
  }

  #close(): void {
    try {
      this.#outlet?.close();
    } catch {}
    this.#outlet = undefined;
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let newlineIndex = bytes.indexOf(10); newlineIndex >= 0; newlineIndex = bytes.indexOf(10, newlineIndex + 1))
    lines++;
  return lines;
}

/** The reader has closed its end, as in `chartpilot trace x | head`. */
export function isClosedPipe(error: unknown): boolean {
  return isSystemError(error, 'EPIPE') || isSystemError(error, 'ENXIO') || isSystemError(error, 'ECONNRESET');
}
