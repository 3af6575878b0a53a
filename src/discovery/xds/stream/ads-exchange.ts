/** Applies the rules of an exchange (machines/discovery/xds/ads-exchange.ts) to messages of a stream. */
import {
  type Exchange,
  type ExchangeEvent,
  type ExchangeRules,
  newExchange,
  routineEventAfter,
  routineEventBefore,
  stepOf,
} from '../../../../machines/discovery/xds/ads-exchange.ts';
import type {
  AdsStreamReport,
  ConnectionPush,
  ResponseOrder,
} from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Watches } from '../../../../machines/discovery/xds/ads-watch.ts';
import { SerialProcessor } from '../../../runtime/one-at-a-time.ts';

export interface AdsExchangeOptions {
  /** Rules, which may change when the node becomes known. */
  readonly rules: () => ExchangeRules;
  readonly report: (report: AdsStreamReport) => void;
  /** The outcome of each order must be reported to the exchange. */
  readonly send: (orders: readonly ResponseOrder[]) => void;
  readonly routine: RoutineListener | undefined;
}

export interface RoutineListener {
  reported(report: AdsStreamReport): void;
  onPushed(order: ConnectionPush): void;
}

export class AdsExchange {
  readonly #options: AdsExchangeOptions;
  readonly #eventQueue = new SerialProcessor<ExchangeEvent>((event) => this.#step(event));
  #exchange: Exchange = newExchange;
  #isStopped = false;

  constructor(options: AdsExchangeOptions) {
    this.#options = options;
  }

  get watches(): Watches {
    return this.#exchange.watches;
  }

  get isHalfClosed(): boolean {
    return this.#exchange.isHalfClosed;
  }

  handleEvent(event: ExchangeEvent): void {
    this.#eventQueue.add(event);
  }

  /** Ignores later events, but keeps the watches. */
  stop(): void {
    this.#isStopped = true;
  }

  #step(event: ExchangeEvent): void {
    if (this.#isStopped) return;
    const { rules, report, send, routine } = this.#options;
    const message = routine === undefined ? undefined : routineEventBefore(event);
    if (message?.type === 'connection.push') routine?.onPushed(message);
    else if (message !== undefined) routine?.reported(message);
    const previous = this.#exchange;
    const step = stepOf(previous, event, rules());
    this.#exchange = step.exchange;
    for (const stepReport of step.reports) report(stepReport);
    if (routine !== undefined) for (const stepReport of routineEventAfter(previous, step)) routine.reported(stepReport);
    // A report may have ended the stream.
    if (step.orders.length > 0 && !this.#isStopped) send(step.orders);
  }
}
