/**
 * Lines on their way out: to a log, a trace, a reader of standard output. Whatever becomes of the other side, no write waits
 * and none throws.
 *
 * A line is written at once. What the outlet has no room for waits, up to a bound; what does not fit is lost, and so is all
 * that comes until the last waiting line is out: then it is told how many there were. An outlet that fails is closed and
 * opened again later, less and less often. Answers to a person ({@link LineSink.print}) wait without a bound and are never lost.
 *
 * Everything written here is read by people and their terminals: control and invisible characters are escaped
 * (`visible-text.ts`), whether the text is ours or another program's.
 */
import { isSystemError, messageOf } from '../errors.ts';
import { visibleBytes } from '../visible-bytes.ts';
import { visibleText } from '../visible-text.ts';
import type { Outlet } from './outlet.ts';

/** Lines that are gone for ever. */
export interface Loss {
  readonly lines: number;
  /** When the first one and the last one were written. */
  readonly from: Date;
  readonly to: Date;
  readonly why: string;
}

/** What has become of the lines that are not out. */
export interface SinkLines {
  /** Lost so far. */
  readonly lost: number;
  /** Written when there is room again; lost if the program ends before. */
  readonly waiting: number;
}

/** Of a sink: the program's, or one whose time moves when a simulation says so. */
export interface SinkClock {
  /** Milliseconds that never move backwards. */
  now(): number;
  /** @param keepsAlive whether the program waits for it. @returns takes it back */
  after(ms: number, fire: () => void, keepsAlive: boolean): () => void;
}

export interface LineSinkOptions {
  /** @throws while it cannot be had */
  readonly open: () => Outlet;
  readonly clock?: SinkClock;
  /** Of lines that wait. Default 1 MiB. */
  readonly maxBytes?: number;
  /** What a new file begins with. Lines that wait for another one are lost then: this is to tell all that they told. */
  readonly begin?: () => string;
}

/** Who is told of a sink. Must not throw. */
export interface SinkListener {
  /** The outlet failed, and did not fail before. `printing`: an answer waits for it. */
  failed?(error: unknown, printing: boolean): void;
  /** All is out again after a failure, after a loss, or both. What is written now stands where the lost lines would. */
  recovered?(loss: Loss | undefined): void;
}

const maxBytesDefault = 1024 * 1024;
/** Between two looks whether a reader made room: doubled while it does not. */
const shortestPollMs = 1;
const longestPollMs = 50;
/** Between two tries of an outlet that fails: doubled while it does. */
const shortestBackOffMs = 100;
const longestBackOffMs = 10_000;
/** An outlet that did not fail for so long is a good one. */
const goodAfterMs = 10_000;

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
  /** What a file begins with is no line that can be lost. */
  readonly begins?: true;
}

export class LineSink {
  readonly #options: LineSinkOptions;
  readonly #maxBytes: number;
  readonly #clock: SinkClock;
  readonly #listeners: SinkListener[] = [];
  #outlet: Outlet | undefined;
  /** Of the last outlet. */
  #id: string | undefined;
  /** Behind what is being written. */
  #waiting: Waiting[] = [];
  /** What is being written, and how much of it is out. */
  #current: Waiting | undefined;
  #offset = 0;
  /** Of both. */
  #waitingBytes = 0;
  /** Some of what waits was printed. */
  #printing = false;
  /** Somebody waited for it in vain, or lines were lost; until all is out. */
  #isTooSlow = false;
  #loss: Loss | undefined;
  #lost = 0;
  /** Why the outlet cannot be had now. */
  #failure: unknown;
  #backOffMs = shortestBackOffMs;
  #failedAt = Number.NEGATIVE_INFINITY;
  #pollMs = shortestPollMs;
  #triedAt = Number.NEGATIVE_INFINITY;
  /** Takes back the next try. */
  #cancelTry: (() => void) | undefined;
  #empty: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(options: LineSinkOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? maxBytesDefault;
    this.#clock = options.clock ?? programClock;
  }

  /** Lines that were lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Counted when it is asked for: of what waits, which is bounded. */
  get lines(): SinkLines {
    const current = this.#current?.bytes.subarray(this.#offset);
    const waiting = [...(current === undefined ? [] : [current]), ...this.#waiting.map(({ bytes }) => bytes)];
    return { lost: this.#lost, waiting: waiting.reduce((sum, bytes) => sum + linesIn(bytes), 0) };
  }

  /** Bytes that wait to be written. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  listen(listener: SinkListener): void {
    this.#listeners.push(listener);
  }

  /** Whether lines go to a file now, which grows, and not to somebody who reads them. */
  get isFile(): boolean {
    return this.#outlet !== undefined && this.#outlet.id !== '';
  }

  /** Whether the file was moved away by somebody. */
  get isMoved(): boolean {
    return this.#outlet?.moved() === true;
  }

  /** Writes whole lines, now or later, or loses them. */
  write(lines: string | Buffer): void {
    this.#renew();
    const bytes = typeof lines === 'string' ? Buffer.from(visibleText(lines)) : visibleBytes(lines);
    const fits = this.#waitingBytes === 0 || this.#waitingBytes + bytes.length <= this.#maxBytes;
    if (this.#loss === undefined && fits) this.#add({ bytes });
    else this.#lose(linesIn(bytes));
    this.#drainUnlessWaiting();
  }

  /** Writes an answer, now or later. */
  print(text: string): void {
    this.#printing = true;
    this.#add({ bytes: Buffer.from(visibleText(text)) });
    this.#drainUnlessWaiting();
  }

  /** Resolves when nothing waits any more, at once when nothing does: who prints much waits for it between. */
  empty(): Promise<void> {
    if (this.#waitingBytes === 0) return Promise.resolve();
    this.#empty ??= Promise.withResolvers<void>();
    return this.#empty.promise;
  }

  /**
   * For a writer that can wait a little, rather than lose lines to a reader that is only slow.
   *
   * @returns undefined when there is room, or when the reader is too slow for that; else resolves when nothing waits any more,
   *   and at the latest when the limit is over
   */
  relief(limitMs: number): Promise<void> | undefined {
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
      void this.empty().then(() => {
        inTime();
        resolve();
      });
    });
  }

  /** A new file is begun, for the next lines. */
  renew(): void {
    this.#close();
    this.#id = undefined;
    this.write('');
  }

  /** Tries once more to write what waits, and lets go of the outlet. */
  close(): void {
    this.#drain();
    this.#dropTry();
    this.#close();
  }

  /** Resolves when all is out, or cannot be, or this limit is over; for answers there is no limit, as long as somebody reads. */
  async end(limitMs: number): Promise<void> {
    const deadline = this.#clock.now() + limitMs;
    for (this.#drain(); this.#waitingBytes > 0 && this.#failure === undefined; this.#drain()) {
      if (!this.#printing && this.#clock.now() >= deadline) return;
      await new Promise<void>((resolve) => void this.#clock.after(this.#pollMs, resolve, true));
    }
  }

  #add(waiting: Waiting): void {
    if (waiting.bytes.length === 0) return;
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.bytes.length;
  }

  #lose(lines: number): void {
    const to = new Date();
    const { lines: before, from, why } = this.#loss ?? { lines: 0, from: to, why: this.#why() };
    this.#loss = { lines: before + lines, from, to, why };
    this.#isTooSlow = true;
    this.#lost += lines;
  }

  #why(): string {
    return this.#failure === undefined ? slowReader : messageOf(this.#failure);
  }

  /** A file that was moved away is left where it is, between two lines. */
  #renew(): void {
    if (this.#waitingBytes > 0) return;
    try {
      if (this.isMoved) this.#close();
      if (this.#failure === undefined) this.#opened();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** While a timer runs, it is the timer's turn; but a long turn of the event loop must not keep a quick reader waiting. */
  #drainUnlessWaiting(): void {
    if (this.#cancelTry === undefined) this.#drain();
    else if (this.#failure === undefined && this.#clock.now() - this.#triedAt >= shortestPollMs) this.#drain();
  }

  #drain(): void {
    this.#dropTry();
    try {
      while (this.#waitingBytes > 0) {
        const outlet = this.#opened();
        const current = this.#next(outlet.maxWriteBytes);
        if (current === undefined) break;
        const taken = outlet.write(current.bytes.subarray(this.#offset));
        this.#triedAt = this.#clock.now();
        if (taken === 0) {
          this.#waitForRoom();
          return;
        }
        this.#took(taken);
      }
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#allOut();
  }

  #took(bytes: number): void {
    this.#pollMs = shortestPollMs;
    this.#offset += bytes;
    this.#waitingBytes -= bytes;
    if (this.#offset < this.#current!.bytes.length) return;
    this.#current = undefined;
    this.#offset = 0;
  }

  /** What is written next: as many lines as a write may take, one at least. */
  #next(maxBytes: number): Waiting | undefined {
    if (this.#current !== undefined) return this.#current;
    let count = 0;
    let bytes = 0;
    for (const waiting of this.#waiting) {
      if (count > 0 && bytes + waiting.bytes.length > maxBytes) break;
      bytes += waiting.bytes.length;
      count++;
      if (waiting.begins) break;
    }
    const taken = this.#waiting.splice(0, count);
    this.#offset = 0;
    this.#current = taken.length <= 1 ? taken[0] : { bytes: Buffer.concat(taken.map((waiting) => waiting.bytes)) };
    return this.#current;
  }

  #tryAfter(ms: number, keepsAlive: boolean): void {
    this.#dropTry();
    this.#cancelTry = this.#clock.after(ms, () => this.#drain(), keepsAlive);
  }

  #dropTry(): void {
    this.#cancelTry?.();
    this.#cancelTry = undefined;
  }

  #waitForRoom(): void {
    this.#tryAfter(this.#pollMs, true);
    this.#pollMs = Math.min(2 * this.#pollMs, longestPollMs);
  }

  #fail(error: unknown): void {
    this.#close();
    const isNew = this.#failure === undefined;
    this.#failure = error;
    const now = this.#clock.now();
    if (now - this.#failedAt > this.#backOffMs + goodAfterMs) this.#backOffMs = shortestBackOffMs;
    this.#failedAt = now;
    // Nobody is kept alive for a disk that may have room again.
    this.#tryAfter(this.#backOffMs, false);
    this.#backOffMs = Math.min(2 * this.#backOffMs, longestBackOffMs);
    if (isNew) for (const listener of this.#listeners) listener.failed?.(error, this.#printing);
  }

  #allOut(): void {
    // With nothing to write nobody knows whether the outlet is good again.
    if (this.#failure !== undefined && this.#outlet === undefined) return;
    this.#printing = false;
    this.#isTooSlow = false;
    this.#empty?.resolve();
    this.#empty = undefined;
    if (this.#failure === undefined && this.#loss === undefined) return;
    const loss = this.#loss;
    this.#failure = undefined;
    this.#loss = undefined;
    for (const listener of this.#listeners) listener.recovered?.(loss);
  }

  #opened(): Outlet {
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
    const lines = [...current, ...this.#waiting]
      .filter(({ begins }) => begins === undefined)
      .reduce((sum, { bytes }) => sum + linesIn(bytes), 0);
    if (lines > 0) this.#lose(lines);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#current = undefined;
    this.#add({ bytes: Buffer.from(visibleText(this.#options.begin())), begins: true });
  }

  /** The half of a line that is in the other file stays there: here it begins again. */
  #beginWithWholeLine(): void {
    if (this.#current === undefined || this.#offset === 0) return;
    const begin = this.#current.bytes.lastIndexOf('\n', this.#offset - 1) + 1;
    this.#waitingBytes += this.#offset - begin;
    this.#offset = begin;
  }

  #close(): void {
    try {
      this.#outlet?.close();
    } catch {
      // What was to be said of it was said by a write.
    }
    this.#outlet = undefined;
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++;
  return lines;
}

/** Whether an outlet failed because nobody reads it any more: `chartpilot trace x | head`. */
export function isWithoutReader(error: unknown): boolean {
  return isSystemError(error, 'EPIPE') || isSystemError(error, 'ENXIO') || isSystemError(error, 'ECONNRESET');
}
