import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../runtime/errors.ts';
import { type SendOptions, sendOtlp } from './send-otlp.ts';

const maxWaiting = 100;

/** Sends requests in order. If the receiver is slow, the oldest request is dropped and counted. */
export class SendQueue {
  readonly #url: URL;
  readonly #options: SendOptions;
  readonly #report: (problem: string) => void;
  readonly #waitingRequests: object[] = [];
  #pendingSend: Promise<void> | undefined;
  #lastProblem: string | undefined;
  lostCount = 0;

  /** @param report called for each problem that differs from the previous one */
  constructor(url: URL, options: SendOptions, report: (problem: string) => void) {
    this.#url = url;
    this.#options = options;
    this.#report = report;
  }

  get waitingCount(): number {
    return this.#waitingRequests.length;
  }

  enqueue(request: object): void {
    if (this.#waitingRequests.length >= maxWaiting) {
      this.#waitingRequests.shift();
      this.lostCount++;
    }
    this.#waitingRequests.push(request);
    this.#pendingSend ??= this.#sendAll();
  }

  /** After `limitMs` the waiting requests are lost. */
  async drain(limitMs: number): Promise<void> {
    await Promise.race([this.#pendingSend, sleep(limitMs, undefined, { ref: false })]);
    this.lostCount += this.#waitingRequests.length;
    this.#waitingRequests.length = 0;
  }

  async #sendAll(): Promise<void> {
    for (
      let nextRequest = this.#waitingRequests.shift();
      nextRequest !== undefined;
      nextRequest = this.#waitingRequests.shift()
    ) {
      try {
        this.#reportProblem(await sendOtlp(this.#url, nextRequest, this.#options));
      } catch (error) {
        this.lostCount++;
        this.#reportProblem(messageOf(error));
      }
    }
    this.#pendingSend = undefined;
  }

  #reportProblem(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#lastProblem) this.#report(problem);
    this.#lastProblem = problem;
  }
}
