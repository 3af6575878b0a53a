/** An exploration in which each step is also held against the sequence diagrams. */
import { type Departure, TraceChecker } from '../debugger/check/check.ts';
import { formatDeparture } from '../debugger/check/check-report-text.ts';
import type { Diagram } from '../debugger/diagram/diagram.ts';
import type { Choice, Violation, World } from '../debugger/explore/world.ts';
import { createRecorder, type Recorder } from '../runtime/trace/recorder.ts';

export interface ConformanceOptions {
  /**
   * Two states are two also when the diagrams' activations stand elsewhere in them: then every run is checked. Otherwise each
   * state is left by every choice once, as it was reached first.
   */
  readonly everyRun?: boolean;
}

export class ConformingWorld implements World {
  readonly #world: World;
  readonly #checker: TraceChecker;
  readonly #diagrams: readonly Diagram[];
  readonly #everyRun: boolean;
  /** Of the run that the world has behind it, whatever was recorded of others. */
  #seq = 0;
  #departures: readonly Departure[] = [];
  #unexpected: readonly string[] = [];

  /** @param begin makes the world, which tells the recorder of all that happens */
  constructor(begin: (recorder: Recorder) => World, diagrams: readonly Diagram[], options: ConformanceOptions = {}) {
    this.#diagrams = diagrams;
    this.#everyRun = options.everyRun ?? false;
    this.#checker = new TraceChecker(diagrams);
    const afresh = this.#checker.save();
    const recorder = createRecorder({ program: 'pilot-agent', now: () => 0 });
    let program: string | undefined;
    recorder.observe((record) => {
      if (record.kind === 'spawn' && record.parent === undefined) {
        program ??= record.actor;
        // The program once more, whose trace is another one. A world may have other actors that nobody else has made.
        if (record.actor === program) {
          afresh();
          this.#seq = 0;
        }
      }
      if (record.kind === 'unexpected')
        this.#unexpected = [...this.#unexpected, `${record.actor}: ${record.on} in ${record.state}`];
      const departures = this.#checker.feed({ ...record, seq: ++this.#seq });
      if (departures.length > 0) this.#departures = [...this.#departures, ...departures];
    });
    this.#world = begin(recorder);
  }

  choices(): readonly Choice[] {
    return this.violations.length > 0 ? [] : this.#world.choices();
  }

  apply(choice: string): void {
    this.#world.apply(choice);
  }

  key(): string {
    return this.#everyRun ? `${this.#world.key()}|${this.#checker.key()}` : this.#world.key();
  }

  get violations(): readonly Violation[] {
    const departures = this.#departures.map((departure) => ({
      invariant: 'every run conforms to the sequence diagrams',
      detail: formatDeparture(departure, this.#diagrams),
    }));
    const unexpected = this.#unexpected.map((detail) => ({
      invariant: 'no event comes that its chart does not expect',
      detail,
    }));
    return [...this.#world.violations, ...departures, ...unexpected];
  }

  get spawned(): number {
    return this.#world.spawned;
  }

  get ending(): boolean {
    return this.#world.ending;
  }

  get reached(): boolean {
    return this.#world.reached ?? true;
  }

  save(): () => void {
    const world = this.#world.save();
    const checker = this.#checker.save();
    const seq = this.#seq;
    const departures = this.#departures;
    const unexpected = this.#unexpected;
    return () => {
      world();
      checker();
      this.#seq = seq;
      this.#departures = departures;
      this.#unexpected = unexpected;
    };
  }
}
