/**
 * A trace over HTTP in its file format. A viewer is only a position in the ring of records, and is disconnected if it does not keep up with the ring.
 */
import type { ServerResponse } from 'node:http';
import { throwUncaught } from '../fences/uncaught.ts';
import { formatTraceLine } from './trace.ts';
import type { TraceRing } from './trace-ring.ts';

export interface TraceStreamOptions {
  readonly maxViewers?: number;
  /** Milliseconds that the end of the program waits for viewers to read the rest (default 500). */
  readonly endLimitMs?: number;
  /** Milliseconds that a viewer may leave its connection full before it loses its slot (default 30,000). */
  readonly unreadLimitMs?: number;
}

/** Serializing one write is the longest time that a viewer blocks the program. */
const batchRecords = 500;
const batchCharacters = 256 * 1024;

export class HttpTraceStream {
  readonly #ring: TraceRing;
  readonly #maxViewers: number;
  readonly #endLimitMs: number;
  readonly #unreadLimitMs: number;
  readonly #viewers = new Set<Viewer>();
  #stopListening: (() => void) | undefined;
  #wakeImmediate: NodeJS.Immediate | undefined;
  #endedPromise: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(ring: TraceRing, { maxViewers = 4, endLimitMs = 500, unreadLimitMs = 30_000 }: TraceStreamOptions = {}) {
    this.#ring = ring;
    this.#maxViewers = maxViewers;
    this.#endLimitMs = endLimitMs;
    this.#unreadLimitMs = unreadLimitMs;
  }

  get hasFreeSlot(): boolean {
    return this.#viewers.size < this.#maxViewers && this.#endedPromise === undefined;
  }

  /**
   * Without `follow`, sends only the available records. The header must be in the ring already, and the caller must check {@link hasFreeSlot} in the
   * same turn of the event loop.
   */
  attach(response: ServerResponse, { follow }: { follow: boolean }): void {
    const viewer = new Viewer(this.#ring, response, { follow, unreadLimitMs: this.#unreadLimitMs });
    this.#viewers.add(viewer);
    this.#stopListening ??= this.#ring.listen(() => {
      // Viewers are served once per turn of the event loop.
      this.#wakeImmediate ??= setImmediate(() => this.#wakeViewers());
    });
    // The ring limits the unread records of a viewer, not the server's timeout.
    response.setTimeout(0);
    response.once('close', () => this.#remove(viewer));
    response.on('error', () => response.destroy());
    viewer.start();
  }

  /** Viewers that do not read the remaining records in time are disconnected. */
  async end(): Promise<void> {
    if (this.#endedPromise === undefined) {
      this.#endedPromise = Promise.withResolvers<void>();
      for (const viewer of this.#viewers) viewer.endAfterRemaining();
      if (this.#viewers.size === 0) this.#endedPromise.resolve();
    }
    const limit = setTimeout(() => {
      for (const viewer of this.#viewers) viewer.disconnect();
    }, this.#endLimitMs);
    await this.#endedPromise.promise;
    clearTimeout(limit);
  }

  #wakeViewers(): void {
    this.#wakeImmediate = undefined;
    for (const viewer of this.#viewers) viewer.resume();
  }

  #remove(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#endedPromise?.resolve();
  }
}

class Viewer {
  readonly #ring: TraceRing;
  readonly #response: ServerResponse;
  #lastSentSeq: number;
  #lastSeqToSend: number;
  #waitsFor: 'records' | 'room' | 'turn' = 'turn';

  readonly #unreadLimitMs: number;
  #unreadTimer: NodeJS.Timeout | undefined;

  constructor(
    ring: TraceRing,
    response: ServerResponse,
    { follow, unreadLimitMs }: { readonly follow: boolean; readonly unreadLimitMs: number },
  ) {
    this.#unreadLimitMs = unreadLimitMs;
    this.#ring = ring;
    this.#response = response;
    this.#lastSentSeq = ring.seqBeforeOldest;
    this.#lastSeqToSend = follow ? Number.POSITIVE_INFINITY : ring.nextSeq;
  }

  start(): void {
    this.#response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    });
    this.#response.on('drain', () => {
      clearTimeout(this.#unreadTimer);
      if (this.#waitsFor === 'room') this.#sendInNextTurn();
    });
    this.#response.once('close', () => clearTimeout(this.#unreadTimer));
    this.#write(formatTraceLine(this.#ring.header()!));
  }

  /** Must be called when there are new records. */
  resume(): void {
    if (this.#waitsFor === 'records') this.#sendNext();
    else if (this.#lastSentSeq < this.#ring.seqBeforeOldest) this.disconnect();
  }

  endAfterRemaining(): void {
    this.#lastSeqToSend = Math.min(this.#lastSeqToSend, this.#ring.nextSeq);
    if (this.#waitsFor === 'records') this.#sendNext();
  }

  /** An aborted connection cannot be interpreted as the end of the trace. */
  disconnect(): void {
    this.#response.destroy();
  }

  #sendNext(): void {
    try {
      this.#sendBatch();
    } catch (error) {
      // Nothing would wake this viewer again, and it would occupy a slot.
      this.disconnect();
      throwUncaught(error);
    }
  }

  #sendBatch(): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    if (this.#lastSentSeq >= this.#lastSeqToSend) {
      this.#response.end();
      return;
    }
    const records = this.#ring.recordsAfter(
      this.#lastSentSeq,
      Math.min(batchRecords, this.#lastSeqToSend - this.#lastSentSeq),
    );
    if (records === undefined) {
      this.disconnect();
      return;
    }
    let batch = '';
    for (const record of records) {
      batch += formatTraceLine(record);
      this.#lastSentSeq = record.seq;
      if (batch.length >= batchCharacters) break;
    }
    if (batch === '') this.#waitsFor = 'records';
    else this.#write(batch);
  }

  #write(text: string): void {
    if (this.#response.write(text)) {
      this.#sendInNextTurn();
      return;
    }
    this.#waitsFor = 'room';
    this.#unreadTimer = setTimeout(() => this.disconnect(), this.#unreadLimitMs).unref();
  }

  /** A connection that accepts all data reports so before the program had a turn. */
  #sendInNextTurn(): void {
    this.#waitsFor = 'turn';
    setImmediate(() => this.#sendNext());
  }
}
