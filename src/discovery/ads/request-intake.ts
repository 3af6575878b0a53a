/**
 * Takes the requests of one stream, one at a time. The next one is read when the one before was dealt with and nothing holds
 * the stream; until then HTTP/2's flow control keeps the client from sending more than its window.
 */
import type { AdsCall } from './ads-transport.ts';
import type { Turns } from './request-turns.ts';

export class RequestIntake {
  readonly #call: AdsCall;
  readonly #turns: Turns;
  readonly #take: (bytes: Buffer) => void;
  /** Asks grpc-js for the next message; undefined until its stream wants one. */
  #readNext: (() => void) | undefined;
  #isBusy = false;
  #isHeld = false;

  /** @param take deals with one request. Must not throw. */
  constructor(call: AdsCall, turns: Turns, take: (bytes: Buffer) => void) {
    this.#call = call;
    this.#turns = turns;
    this.#take = take;
  }

  /** Begins to read. */
  begin(): void {
    const call = this.#call;
    // The stream's own buffer would ask for sixteen messages ahead, of megabytes each.
    const read = call._read.bind(call);
    call._read = (size) => {
      this.#readNext = () => read(size);
      this.#readOn();
    };
    call.on('data', (bytes: Buffer) => {
      this.#isBusy = true;
      const next = (): void => {
        this.#isBusy = false;
        this.#readOn();
      };
      this.#turns.run(() => this.#take(bytes), bytes.length, next);
    });
  }

  /** Reads nothing until {@link release}. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#readOn();
  }

  #readOn(): void {
    if (this.#isBusy || this.#isHeld) return;
    const read = this.#readNext;
    this.#readNext = undefined;
    read?.();
  }
}
