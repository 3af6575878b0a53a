/**
 * Reads the requests of one stream, each after the previous one is processed and while the stream is not paused. Until
 * then, HTTP/2 flow control limits what the client sends. The first request may be inspected before the stream starts.
 */
import type { AdsCall } from '../stream/ads-transport.ts';
import type { WorkTurns } from './request-turns.ts';

export class RequestIntake {
  readonly #call: AdsCall;
  readonly #turns: WorkTurns;
  /** Requests the next message from grpc-js; `undefined` until its stream wants one. */
  #readNext: (() => void) | undefined;
  /** Inspects the first request when it arrives. */
  #peekListener: (() => void) | undefined;
  #isPaced = false;
  #isBusy = false;
  #isHeld = false;

  constructor(call: AdsCall, turns: WorkTurns) {
    this.#call = call;
    this.#turns = turns;
  }

  /** Inspects the first request without consuming it. At most once, before {@link begin}. */
  peek(onRequest: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#pace();
    this.#peekListener = () => {
      // The end of the call is handled by the consumer of the requests.
      if (call.readableLength === 0) return;
      this.#isBusy = true;
      const bytes: Buffer = call.read();
      call.unshift(bytes);
      onRequest(bytes);
    };
    call.once('readable', this.#peekListener);
  }

  /**
   * Starts to read requests.
   *
   * @param take processes a request. Must not throw.
   */
  begin(take: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#pace();
    if (this.#peekListener !== undefined) call.off('readable', this.#peekListener);
    call.on('data', (bytes: Buffer) => {
      this.#isBusy = true;
      const next = (): void => {
        this.#isBusy = false;
        this.#readOn();
      };
      this.#turns.run(() => take(bytes), bytes.length, next);
    });
    // A call whose first request was inspected is paused.
    if (this.#peekListener !== undefined) call.resume();
  }

  /** Pauses reading until {@link release}. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#readOn();
  }

  /** The stream's own buffer would request sixteen messages ahead, of megabytes each. */
  #pace(): void {
    if (this.#isPaced) return;
    this.#isPaced = true;
    const call = this.#call;
    const read = call._read.bind(call);
    call._read = (size) => {
      this.#readNext = () => read(size);
      this.#readOn();
    };
  }

  #readOn(): void {
    if (this.#isBusy || this.#isHeld) return;
    const read = this.#readNext;
    this.#readNext = undefined;
    read?.();
  }
}
