import { type Deviation, TraceChecker } from '../debugger/check/check.ts';
import { formatDeviation } from '../debugger/check/check-report-text.ts';
import type { Diagram } from '../debugger/diagram/diagram.ts';
import type { InvariantViolation, World, WorldChoice } from '../debugger/explore/world.ts';
import { createRecorder, type Recorder } from '../runtime/trace/recorder.ts';

export interface ConformanceOptions {
  /** Includes the positions in the diagrams in a state's key, so that every run is checked. */
  readonly everyRun?: boolean;
}

export class ConformingWorld implements World {
  readonly #world: World;
  readonly #checker: TraceChecker;
  readonly #diagrams: readonly Diagram[];
  readonly #everyRun: boolean;
  /** Last record of the current run. */
  #seq = 0;
  #deviations: readonly Deviation[] = [];
  #unexpectedTexts: readonly string[] = [];

  constructor(
    beginWorld: (recorder: Recorder) => World,
    diagrams: readonly Diagram[],
    options: ConformanceOptions = {},
  ) {
    this.#diagrams = diagrams;
    this.#everyRun = options.everyRun ?? false;
    this.#checker = new TraceChecker(diagrams);
    const initialCheckerState = this.#checker.save();
    const recorder = createRecorder({ program: 'pilot-agent', now: () => 0 });
    let program: string | undefined;
    recorder.observe((record) => {
      if (record.kind === 'spawn' && record.parent === undefined) {
        program ??= record.actor;
        // The program restarts with a new trace. A simulation can have other root actors.
        if (record.actor === program) {
          initialCheckerState();
          this.#seq = 0;
        }
      }
      if (record.kind === 'unexpected')
        this.#unexpectedTexts = [...this.#unexpectedTexts, `${record.actor}: ${record.on} in ${record.state}`];
      const deviations = this.#checker.feed({ ...record, seq: ++this.#seq });
      if (deviations.length > 0) this.#deviations = [...this.#deviations, ...deviations];
    });
    this.#world = beginWorld(recorder);
  }

  choices(): readonly WorldChoice[] {
    return this.violations.length > 0 ? [] : this.#world.choices();
  }

  apply(choice: string): void {
    this.#world.apply(choice);
  }

  key(): string {
    return this.#everyRun ? `${this.#world.key()}|${this.#checker.key()}` : this.#world.key();
  }

  get violations(): readonly InvariantViolation[] {
    const deviations = this.#deviations.map((deviation) => ({
      invariant: 'every run conforms to the sequence diagrams',
      detail: formatDeviation(deviation, this.#diagrams),
    }));
    const unexpectedViolations = this.#unexpectedTexts.map((detail) => ({
      invariant: 'no event comes that its chart does not expect',
      detail,
    }));
    return [...this.#world.violations, ...deviations, ...unexpectedViolations];
  }

  get spawnCount(): number {
    return this.#world.spawnCount;
  }

  get isEnding(): boolean {
    return this.#world.isEnding;
  }

  get isGoalReached(): boolean {
    return this.#world.isGoalReached ?? true;
  }

  save(): () => void {
    const world = this.#world.save();
    const checker = this.#checker.save();
    const seq = this.#seq;
    const deviations = this.#deviations;
    const unexpectedTexts = this.#unexpectedTexts;
    return () => {
      world();
      checker();
      this.#seq = seq;
      this.#deviations = deviations;
      this.#unexpectedTexts = unexpectedTexts;
    };
  }
}
