import { isIdle, newRollout, type Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
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
   * A report may cause further updates.
   *
   * @param currentType type of the order being processed, whose outcome reports what it waits for
   * @param first event that precedes the others
   */
  update(next: Rollout, currentType?: string, first?: RolloutEvent): void {
    const previous = this.#current;
    if (next === previous) return;
    this.#current = isIdle(next) ? newRollout : next;
    this.#reports.report(previous, () => this.#current);
    if (first !== undefined) this.#stream.takeRolloutEvent(first);
    if (previous.held === this.#current.held) return;
    for (const event of [...eventsOf(previous, this.#current, currentType)]) this.#stream.takeRolloutEvent(event);
  }

  end(): void {
    this.#reports.end(this.#current);
  }
}
