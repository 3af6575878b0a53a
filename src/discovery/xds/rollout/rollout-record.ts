/** The record of make before break on one stream, and what follows when it changes. */
import { isAtRest, newRollout, type Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import { eventsOf, type ReportedStream, type RolloutEvent, RolloutReports } from './rollout-events.ts';

export interface RecordedStream extends ReportedStream {
  takeRolloutEvent(event: RolloutEvent): void;
}

export class RolloutRecord {
  readonly #stream: RecordedStream;
  readonly #reports: RolloutReports;
  #current: Rollout = newRollout;

  constructor(stream: RecordedStream) {
    this.#stream = stream;
    this.#reports = new RolloutReports(stream);
  }

  get current(): Rollout {
    return this.#current;
  }

  /**
   * Sets the next record, and reports what follows. A report may lead to responses, and so to records after this one.
   *
   * @param answered type of the order that is being answered: its outcome reports what it waits for
   * @param first is taken before what follows
   */
  update(next: Rollout, answered?: string, first?: RolloutEvent): void {
    const before = this.#current;
    if (next === before) return;
    this.#current = isAtRest(next) ? newRollout : next;
    this.#reports.report(before, () => this.#current);
    if (first !== undefined) this.#stream.takeRolloutEvent(first);
    if (before.held === this.#current.held) return;
    for (const event of [...eventsOf(before, this.#current, answered)]) this.#stream.takeRolloutEvent(event);
  }

  /** The stream has ended: its clusters and waits are no longer counted. */
  end(): void {
    this.#reports.end(this.#current);
  }
}
