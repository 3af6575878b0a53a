/**
 * Takes the requests of one stream, one at a time. The next one is read when the one before was dealt with and nothing holds
 * the stream; until then HTTP/2's flow control keeps the client from sending more than its window. The first may be looked at
 * before the stream begins.
 */
import type { AdsCall } from '../stream/ads-transport.ts';
import type { Turns } from './request-turns.ts';

export class RequestIntake {
  readonly #call: AdsCall;
  readonly #turns: Turns;
  /** Asks grpc-js for the next message; undefined until its stream wants one. */
  #readNext: (() => void) | undefined;
  /** Looks at the first request when it is there; undefined when nobody wants to see it. */
  #look: (() => void) | undefined;
  #isPaced = false;
  #isBusy = false;
  #isHeld = false;

  constructor(call: AdsCall, turns: Turns) {
    this.#call = call;
    this.#turns = turns;
  }

  /** Reads the first request, for one who waits to see it, and leaves it where it is. Once, before {@link begin}. */
  look(seen: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#pace();
    this.#look = () => {
      // The end of the call is left for whoever takes the requests.
      if (call.readableLength === 0) return;
      this.#isBusy = true;
      const bytes: Buffer = call.read();
      call.unshift(bytes);
      seen(bytes);
    };
    call.once('readable', this.#look);
  }

  /**
   * Begins to take requests.
   *
   * @param take deals with one. Must not throw.
   */
  begin(take: (bytes: Buffer) => void): void {
    const call = this.#call;
    this.#pace();
    if (this.#look !== undefined) call.off('readable', this.#look);
    call.on('data', (bytes: Buffer) => {
      this.#isBusy = true;
      const next = (): void => {
        this.#isBusy = false;
        this.#readOn();
      };
      this.#turns.run(() => take(bytes), bytes.length, next);
    });
    // A call whose first request was looked at is not flowing.
    if (this.#look !== undefined) call.resume();
  }

  /** Reads nothing until {@link release}. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#readOn();
  }

  /** The stream's own buffer would ask for sixteen messages ahead, of megabytes each. */
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
