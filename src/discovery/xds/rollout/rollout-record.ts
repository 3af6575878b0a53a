import { isIdle, newRollout, type Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import { eventsOf, type ReportedStream, type RolloutEvent, RolloutReports } from './rollout-events.ts';

export interface RecordedStream extends ReportedStream {
  onRolloutEvent(event: RolloutEvent): void;
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
   * Reports the changes. May be re-entered, because a report can update the rollout.
   *
   * @param currentType its waiting resources are reported with the order's outcome, so no event is sent for them
   * @param firstEvent event that precedes the others
   */
  update(next: Rollout, currentType?: string, firstEvent?: RolloutEvent): void {
    const previous = this.#current;
    if (next === previous) return;
    this.#current = isIdle(next) ? newRollout : next;
    this.#reports.report(previous, () => this.#current);
    if (firstEvent !== undefined) this.#stream.onRolloutEvent(firstEvent);
    if (previous.held === this.#current.held) return;
    for (const event of [...eventsOf(previous, this.#current, currentType)]) this.#stream.onRolloutEvent(event);
  }

  end(): void {
    this.#reports.end(this.#current);
  }
}
