import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../runtime/errors.ts';
import { type SendOptions, sendOtlp } from './send-otlp.ts';

/** Requests that wait for a receiver that is away or slow. */
const mostWaiting = 100;

/** Sends requests one after the other. With more of them than may wait the oldest is dropped, and counted. */
export class SendQueue {
  readonly #url: URL;
  readonly #options: SendOptions;
  readonly #tell: (problem: string) => void;
  readonly #waiting: object[] = [];
  #sending: Promise<void> | undefined;
  #lastProblem: string | undefined;
  lost = 0;

  /** @param tell is told what goes wrong, each problem once until it is another */
  constructor(url: URL, options: SendOptions, tell: (problem: string) => void) {
    this.#url = url;
    this.#options = options;
    this.#tell = tell;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  offer(request: object): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#waiting.shift();
      this.lost++;
    }
    this.#waiting.push(request);
    this.#sending ??= this.#sendAll();
  }

  /** @returns when all is sent or given up; after `limitMs` what still waits is lost */
  async end(limitMs: number): Promise<void> {
    await Promise.race([this.#sending, sleep(limitMs, undefined, { ref: false })]);
    this.lost += this.#waiting.length;
    this.#waiting.length = 0;
  }

  async #sendAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        this.#note(await sendOtlp(this.#url, next, this.#options));
      } catch (error) {
        this.lost++;
        this.#note(messageOf(error));
      }
    }
    this.#sending = undefined;
  }

  #note(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#lastProblem) this.#tell(problem);
    this.#lastProblem = problem;
  }
}
