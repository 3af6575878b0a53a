/** Reads the requests of a stream one at a time, each after the previous one was processed. Until then, HTTP/2 flow control limits the client. */
import type { AdsCall } from '../stream/ads-transport.ts';
import type { WorkTurns } from './request-turns.ts';

export class RequestIntake {
  readonly #call: AdsCall;
  readonly #workTurns: WorkTurns;
  /** Set when the client has acknowledged a response. */
  isServed = false;
  /** Requests the next message from grpc-js. `undefined` until grpc-js requests one. */
  #readNext: (() => void) | undefined;
  #peekListener: (() => void) | undefined;
  #isReadPaced = false;
  #isBusy = false;
  #isHeld = false;

  constructor(call: AdsCall, workTurns: WorkTurns) {
    this.#call = call;
    this.#workTurns = workTurns;
  }

  /** Does not consume the request. Called at most once, before {@link start}. */
  peekFirstRequest(onRequest: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#paceReads();
    this.#peekListener = () => {
      // The consumer of the requests handles the end of the call.
      if (call.readableLength === 0) return;
      this.#isBusy = true;
      const bytes: Buffer = call.read();
      call.unshift(bytes);
      onRequest(bytes);
    };
    call.once('readable', this.#peekListener);
  }

  /** @param onMessage must not throw */
  start(onMessage: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#paceReads();
    if (this.#peekListener !== undefined) call.off('readable', this.#peekListener);
    call.on('data', (bytes: Buffer) => {
      this.#isBusy = true;
      const next = (): void => {
        this.#isBusy = false;
        this.#resumeReading();
      };
      this.#workTurns.run(() => onMessage(bytes), bytes.length, next, this.isServed);
    });
    // Reading ahead has paused the call.
    if (this.#peekListener !== undefined) call.resume();
  }

  pause(): void {
    this.#isHeld = true;
  }

  resume(): void {
    this.#isHeld = false;
    this.#resumeReading();
  }

  /** By default, the stream buffers sixteen messages, of megabytes each. */
  #paceReads(): void {
    if (this.#isReadPaced) return;
    this.#isReadPaced = true;
    const call = this.#call;
    const readCall = call._read.bind(call);
    call._read = (size) => {
      this.#readNext = () => readCall(size);
      this.#resumeReading();
    };
  }

  #resumeReading(): void {
    if (this.#isBusy || this.#isHeld) return;
    const pendingRead = this.#readNext;
    this.#readNext = undefined;
    pendingRead?.();
  }
}
