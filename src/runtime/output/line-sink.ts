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

export interface Loss {
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
  recovered?(loss: Loss | undefined): void;
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

interface Waiting {
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
  #waitingLines: Waiting[] = [];
  #current: Waiting | undefined;
  #offset = 0;
  #waitingBytes = 0;
  #isPrinting = false;
  /** Whether a wait timed out or lines were lost since the queue was last empty. */
  #isTooSlow = false;
  #loss: Loss | undefined;
  #lostLines = 0;
  #failure: unknown;
  #backOffMs = minBackOffMs;
  #failedAt = Number.NEGATIVE_INFINITY;
  #pollMs = minPollMs;
  #triedAt = Number.NEGATIVE_INFINITY;
  #cancelAttempt: (() => void) | undefined;
  #emptyWait: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(options: LineSinkOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? maxBytesDefault;
    this.#clock = options.clock ?? programClock;
  }

  get lost(): number {
    return this.#lostLines;
  }

  /** Computed on request from the bounded queue. */
  get lines(): SinkLines {
    const current = this.#current?.bytes.subarray(this.#offset);
    const waitingChunks = [
      ...(current === undefined ? [] : [current]),
      ...this.#waitingLines.map(({ bytes }) => bytes),
    ];
    return { lost: this.#lostLines, waiting: waitingChunks.reduce((sum, bytes) => sum + linesIn(bytes), 0) };
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

  get isMoved(): boolean {
    return this.#outlet?.isMoved() === true;
  }

  write(lines: string | Buffer): void {
    this.#renew();
    const bytes = typeof lines === 'string' ? Buffer.from(visibleText(lines)) : visibleBytes(lines);
    const isWithinLimit = this.#waitingBytes === 0 || this.#waitingBytes + bytes.length <= this.#maxBytes;
    if (this.#loss === undefined && isWithinLimit) this.#add({ bytes });
    else this.#lose(linesIn(bytes));
    this.#drainUnlessWaiting();
  }

  print(text: string): void {
    this.#isPrinting = true;
    this.#add({ bytes: Buffer.from(visibleText(text)) });
    this.#drainUnlessWaiting();
  }

  /** Resolves when the queue is empty. A command with much output waits for it between writes. */
  whenEmpty(): Promise<void> {
    if (this.#waitingBytes === 0) return Promise.resolve();
    this.#emptyWait ??= Promise.withResolvers<void>();
    return this.#emptyWait.promise;
  }

  /**
   * Lets a writer wait a limited time instead of losing lines to a slow reader. Returns `undefined` if there is space, or if the reader is too slow
   * to wait for it.
   */
  waitForSpace(limitMs: number): Promise<void> | undefined {
    if (this.#isTooSlow || this.#waitingBytes < this.#maxBytes / 2) return undefined;
    return new Promise((resolve) => {
      const inTime = this.#clock.after(
        limitMs,
        () => {
          this.#isTooSlow = true;
          resolve();
        },
        true,
      );
      void this.whenEmpty().then(() => {
        inTime();
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
    this.#dropAttempt();
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

  #add(line: Waiting): void {
    if (line.bytes.length === 0) return;
    this.#waitingLines.push(line);
    this.#waitingBytes += line.bytes.length;
  }

  #lose(lines: number): void {
    const to = new Date();
    const { lines: previousLines, from, why } = this.#loss ?? { lines: 0, from: to, why: this.#failureReason() };
    this.#loss = { lines: previousLines + lines, from, to, why };
    this.#isTooSlow = true;
    this.#lostLines += lines;
  }

  #failureReason(): string {
    return this.#failure === undefined ? slowReader : messageOf(this.#failure);
  }

  #renew(): void {
    if (this.#waitingBytes > 0) return;
    try {
      if (this.isMoved) this.#close();
      if (this.#failure === undefined) this.#ensureOutlet();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** While the timer runs, it drains the queue, but a long turn of the event loop must not delay a fast reader. */
  #drainUnlessWaiting(): void {
    if (this.#cancelAttempt === undefined) this.#drain();
    else if (this.#failure === undefined && this.#clock.now() - this.#triedAt >= minPollMs) this.#drain();
  }

  #drain(): void {
    this.#dropAttempt();
    try {
      while (this.#waitingBytes > 0) {
        const outlet = this.#ensureOutlet();
        const current = this.#next(outlet.maxWriteBytes);
        if (current === undefined) break;
        const writtenBytes = outlet.write(current.bytes.subarray(this.#offset));
        this.#triedAt = this.#clock.now();
        if (writtenBytes === 0) {
          this.#waitForSpace();
          return;
        }
        this.#took(writtenBytes);
      }
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#allOut();
  }

  #took(bytes: number): void {
    this.#pollMs = minPollMs;
    this.#offset += bytes;
    this.#waitingBytes -= bytes;
    if (this.#offset < this.#current!.bytes.length) return;
    this.#current = undefined;
    this.#offset = 0;
  }

  /** The next batch contains as many lines as one write may take, at least one. */
  #next(maxBytes: number): Waiting | undefined {
    if (this.#current !== undefined) return this.#current;
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
    this.#current =
      mergedLines.length <= 1 ? mergedLines[0] : { bytes: Buffer.concat(mergedLines.map((line) => line.bytes)) };
    return this.#current;
  }

  #scheduleAttempt(ms: number, keepsAlive: boolean): void {
    this.#dropAttempt();
    this.#cancelAttempt = this.#clock.after(ms, () => this.#drain(), keepsAlive);
  }

  #dropAttempt(): void {
    this.#cancelAttempt?.();
    this.#cancelAttempt = undefined;
  }

  #waitForSpace(): void {
    this.#scheduleAttempt(this.#pollMs, true);
    this.#pollMs = Math.min(2 * this.#pollMs, maxPollMs);
  }

  #fail(error: unknown): void {
    this.#close();
    const isNew = this.#failure === undefined;
    this.#failure = error;
    const now = this.#clock.now();
    if (now - this.#failedAt > this.#backOffMs + resetBackOffAfterMs) this.#backOffMs = minBackOffMs;
    this.#failedAt = now;
    // A disk that is full does not keep the process alive.
    this.#scheduleAttempt(this.#backOffMs, false);
    this.#backOffMs = Math.min(2 * this.#backOffMs, maxBackOffMs);
    if (isNew) for (const listener of this.#listeners) listener.failed?.(error, this.#isPrinting);
  }

  #allOut(): void {
    // Without a write it is unknown whether the outlet works again.
    if (this.#failure !== undefined && this.#outlet === undefined) return;
    this.#isPrinting = false;
    this.#isTooSlow = false;
    this.#emptyWait?.resolve();
    this.#emptyWait = undefined;
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
      this.#beginFile();
    }
    return this.#outlet;
  }

  #beginFile(): void {
    if (this.#options.begin === undefined) {
      this.#beginWithWholeLine();
      return;
    }
    const current =
      this.#current === undefined ? [] : [{ ...this.#current, bytes: this.#current.bytes.subarray(this.#offset) }];
    const lines = [...current, ...this.#waitingLines]
      .filter(({ isHeader }) => isHeader === undefined)
      .reduce((sum, { bytes }) => sum + linesIn(bytes), 0);
    if (lines > 0) this.#lose(lines);
    this.#waitingLines = [];
    this.#waitingBytes = 0;
    this.#current = undefined;
    this.#add({ bytes: Buffer.from(visibleText(this.#options.begin())), isHeader: true });
  }

  /** Half of the line is in the previous file, so it is written again from its start. */
  #beginWithWholeLine(): void {
    if (this.#current === undefined || this.#offset === 0) return;
    const lineStart = this.#current.bytes.lastIndexOf('\n', this.#offset - 1) + 1;
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
export function hasNoReader(error: unknown): boolean {
  return isSystemError(error, 'EPIPE') || isSystemError(error, 'ENXIO') || isSystemError(error, 'ECONNRESET');
}
