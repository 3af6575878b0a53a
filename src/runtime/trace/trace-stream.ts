/**
 * A trace as it is written, over HTTP: what a ring holds, then every record as it comes. A viewer is a place in the ring
 * and nothing more: it is given the next records when its connection has room, and one that does not keep up with the
 * ring is cut off. So the program neither waits for a viewer nor keeps anything for it.
 */
import type { ServerResponse } from 'node:http';
import { letEscape } from '../fences/uncaught.ts';
import { formatTraceLine } from './trace.ts';
import type { TraceRing } from './trace-ring.ts';

export interface TraceStreamOptions {
  /** Viewers at the same time. Default 4. */
  readonly maxViewers?: number;
  /** How long the end of the program waits for viewers to take the rest. Default 500. */
  readonly endLimitMs?: number;
  /** How long a viewer may take to make room for the next records: it has the place of somebody else. Default 30,000. */
  readonly unreadLimitMs?: number;
}

/** One write: what it takes to make it is the longest time that the program is held up by a viewer. */
const batchRecords = 500;
const batchCharacters = 256 * 1024;

export class TraceStream {
  readonly #ring: TraceRing;
  readonly #maxViewers: number;
  readonly #endLimitMs: number;
  readonly #unreadLimitMs: number;
  readonly #viewers = new Set<Viewer>();
  #stopListening: (() => void) | undefined;
  #wake: NodeJS.Immediate | undefined;
  #ended: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(ring: TraceRing, { maxViewers = 4, endLimitMs = 500, unreadLimitMs = 30_000 }: TraceStreamOptions = {}) {
    this.#ring = ring;
    this.#maxViewers = maxViewers;
    this.#endLimitMs = endLimitMs;
    this.#unreadLimitMs = unreadLimitMs;
  }

  /** Whether there is room for another viewer. */
  get hasRoom(): boolean {
    return this.#viewers.size < this.#maxViewers && this.#ended === undefined;
  }

  /**
   * Answers with the trace, whose header is in the ring already: until the viewer leaves or {@link end}; without `follow` what there is now. Whoever calls has
   * asked {@link hasRoom} in this turn of the event loop, and leaves the connection alone from now on.
   */
  attach(response: ServerResponse, { follow }: { follow: boolean }): void {
    const viewer = new Viewer(this.#ring, response, { follow, unreadLimitMs: this.#unreadLimitMs });
    this.#viewers.add(viewer);
    this.#stopListening ??= this.#ring.listen(() => {
      // However many records a turn of the event loop makes, viewers are looked after once.
      this.#wake ??= setImmediate(() => this.#wakeViewers());
    });
    // What a viewer may leave unread, the ring says, not the server's time.
    response.setTimeout(0);
    response.once('close', () => this.#remove(viewer));
    response.on('error', () => response.destroy());
    viewer.begin();
  }

  /** No more records come: viewers are given the rest and a proper end, those that do not take it in time are cut off. */
  async end(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = Promise.withResolvers<void>();
      for (const viewer of this.#viewers) viewer.endAfterRest();
      if (this.#viewers.size === 0) this.#ended.resolve();
    }
    const limit = setTimeout(() => {
      for (const viewer of this.#viewers) viewer.cutOff();
    }, this.#endLimitMs);
    await this.#ended.promise;
    clearTimeout(limit);
  }

  #wakeViewers(): void {
    this.#wake = undefined;
    for (const viewer of this.#viewers) viewer.wake();
  }

  #remove(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#ended?.resolve();
  }
}

class Viewer {
  readonly #ring: TraceRing;
  readonly #response: ServerResponse;
  /** Number of the last record that it was given. */
  #position: number;
  /** Number of the last record that it gets. */
  #until: number;
  /** What has to happen before it gets more: a new record, room in its connection, or the next turn of the event loop. */
  #waitsFor: 'records' | 'room' | 'turn' = 'turn';

  readonly #unreadLimitMs: number;
  #unread: NodeJS.Timeout | undefined;

  constructor(
    ring: TraceRing,
    response: ServerResponse,
    { follow, unreadLimitMs }: { readonly follow: boolean; readonly unreadLimitMs: number },
  ) {
    this.#unreadLimitMs = unreadLimitMs;
    this.#ring = ring;
    this.#response = response;
    this.#position = ring.begin;
    this.#until = follow ? Number.POSITIVE_INFINITY : ring.end;
  }

  begin(): void {
    this.#response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    });
    this.#response.on('drain', () => {
      clearTimeout(this.#unread);
      if (this.#waitsFor === 'room') this.#giveNextTurn();
    });
    this.#response.once('close', () => clearTimeout(this.#unread));
    this.#write(formatTraceLine(this.#ring.header()!));
  }

  /** There are new records. */
  wake(): void {
    if (this.#waitsFor === 'records') this.#give();
    else if (this.#position < this.#ring.begin) this.cutOff();
  }

  endAfterRest(): void {
    this.#until = Math.min(this.#until, this.#ring.end);
    if (this.#waitsFor === 'records') this.#give();
  }

  /** Its connection breaks off in the middle: it cannot take this for the end of the trace. */
  cutOff(): void {
    this.#response.destroy();
  }

  /** Writes the next records, if there are any. */
  #give(): void {
    try {
      this.#giveBatch();
    } catch (error) {
      // Nothing would wake it again, and it has the place of somebody else.
      this.cutOff();
      letEscape(error);
    }
  }

  #giveBatch(): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    if (this.#position >= this.#until) {
      this.#response.end();
      return;
    }
    const records = this.#ring.after(this.#position, Math.min(batchRecords, this.#until - this.#position));
    if (records === undefined) {
      this.cutOff();
      return;
    }
    let batch = '';
    for (const record of records) {
      batch += formatTraceLine(record);
      this.#position = record.seq;
      if (batch.length >= batchCharacters) break;
    }
    if (batch === '') this.#waitsFor = 'records';
    else this.#write(batch);
  }

  #write(text: string): void {
    if (this.#response.write(text)) {
      this.#giveNextTurn();
      return;
    }
    this.#waitsFor = 'room';
    this.#unread = setTimeout(() => this.cutOff(), this.#unreadLimitMs).unref();
  }

  /** Not at once: a connection that takes all that it is given tells so before the program had a turn. */
  #giveNextTurn(): void {
    this.#waitsFor = 'turn';
    setImmediate(() => this.#give());
  }
}
