/** Applies the rules of an exchange (machines/discovery/xds/ads-exchange.ts) to each message of a stream, as it comes. */
import {
  type Exchange,
  type ExchangeEvent,
  type ExchangeRules,
  newExchange,
  routineAfter,
  routineBefore,
  stepOf,
} from '../../../../machines/discovery/xds/ads-exchange.ts';
import type { PushToClient, ResponseOrder, StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Watches } from '../../../../machines/discovery/xds/ads-watch.ts';
import { OneAtATime } from '../../../runtime/one-at-a-time.ts';

export interface AdsExchangeOptions {
  /** Rules of the stream: they may change when the node is known. */
  readonly rules: () => ExchangeRules;
  /** Tells the chart what matters to the stream's life. */
  readonly tell: (report: StreamReport) => void;
  /** Has these made and sent; what becomes of each is to be told to the exchange. */
  readonly send: (orders: readonly ResponseOrder[]) => void;
  /** Told of the ordinary run as well, where people want to see it; undefined where they do not. */
  readonly routine: RoutineListener | undefined;
}

/** The ordinary run of a stream, for its chart: who sees it at the trace level full sees it there. */
export interface RoutineListener {
  told(report: StreamReport): void;
  pushed(order: PushToClient): void;
}

export class AdsExchange {
  readonly #options: AdsExchangeOptions;
  readonly #inbox = new OneAtATime<ExchangeEvent>((event) => this.#step(event));
  #exchange: Exchange = newExchange;
  #isStopped = false;

  constructor(options: AdsExchangeOptions) {
    this.#options = options;
  }

  /** What the client watches. */
  get watches(): Watches {
    return this.#exchange.watches;
  }

  take(event: ExchangeEvent): void {
    this.#inbox.add(event);
  }

  /** Nothing that comes counts any more; what is known stays. */
  stop(): void {
    this.#isStopped = true;
  }

  #step(event: ExchangeEvent): void {
    if (this.#isStopped) return;
    const { rules, tell, send, routine } = this.#options;
    const message = routine === undefined ? undefined : routineBefore(event);
    if (message?.type === 'push.order') routine?.pushed(message);
    else if (message !== undefined) routine?.told(message);
    const before = this.#exchange;
    const step = stepOf(before, event, rules());
    this.#exchange = step.exchange;
    for (const report of step.reports) tell(report);
    if (routine !== undefined) for (const report of routineAfter(before, step)) routine.told(report);
    // What it was told may have ended the stream.
    if (step.orders.length > 0 && !this.#isStopped) send(step.orders);
  }
}
