/** The same replica performs duties with one Lease, so that one can read results of another. */
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';

export class CombinedDuty implements Duty {
  readonly lease: string;
  readonly #duties: readonly Duty[];

  /** @param otherDuties duties of the same Lease, without annotations */
  constructor(firstDuty: Duty, ...otherDuties: readonly Duty[]) {
    this.lease = firstDuty.lease;
    this.#duties = [firstDuty, ...otherDuties];
  }

  watch(onDue: () => void): () => void {
    const stops = this.#duties.map((duty) => duty.watch(onDue));
    return () => {
      for (const stop of stops) stop();
    };
  }

  get isDue(): boolean {
    return this.#duties.some(({ isDue }) => isDue);
  }

  /** The duties run concurrently, so that none waits for writes of another. */
  async writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    const reports = await Promise.all(this.#duties.map((duty) => duty.writeDue(run, writeGate)));
    return {
      writtenCount: reports.reduce((sum, { writtenCount }) => sum + writtenCount, 0),
      failedCount: reports.reduce((sum, { failedCount }) => sum + failedCount, 0),
      reason: reports.findLast(({ reason }) => reason !== '')?.reason ?? '',
    };
  }
}
