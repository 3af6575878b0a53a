/** Which steps each actor took, and when: the chart view asks for the one just taken. */
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording.ts';

type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

/** Grows with the recording. */
export class StepIndex {
  readonly #recording: Recording;
  readonly #steps = new Map<string, number[]>();
  /** Of every name that was ever used: the machine of its last bearer. */
  readonly #machines = new Map<string, string>();
  #read = 0;

  constructor(recording: Recording) {
    this.#recording = recording;
    for (const { actor, machine } of recording.header.actors ?? []) if (machine) this.#machines.set(actor, machine);
    this.grow();
  }

  /** The machine of an actor, whether it lives or not; undefined for effects. */
  machineOf(actor: string): string | undefined {
    return this.#machines.get(actor);
  }

  grow(): void {
    const { records } = this.#recording;
    for (; this.#read < records.length; this.#read++) {
      const record = records[this.#read]!;
      if (record.kind === 'spawn' && record.machine !== undefined) this.#machines.set(record.actor, record.machine);
      if (record.kind !== 'transition' && record.kind !== 'step') continue;
      const steps = this.#steps.get(record.actor);
      if (steps === undefined) this.#steps.set(record.actor, [this.#read]);
      else steps.push(this.#read);
    }
  }

  /** The last steps of an actor at a place, newest first. Steps of one that had the name before may be among them. */
  *before(actor: string, place: number): Generator<{ index: number; record: StepRecord }> {
    const steps = this.#steps.get(actor) ?? [];
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle]! <= place) low = middle + 1;
      else high = middle;
    }
    for (let i = low - 1; i >= 0; i--) {
      const index = steps[i]!;
      yield { index, record: this.#recording.records[index] as StepRecord };
    }
  }
}

/** Numbers of transitions. */
export interface Taken {
  /** By the record at the place, or by the actor in the same cause as it. */
  readonly now: readonly number[];
  /** Its last step before that: how it came where it is. */
  readonly last: readonly number[];
}

const nothing: Taken = { now: [], last: [] };

/** What an actor took at a place; `spawned` is the number of its spawn. */
export function takenAt(recording: Recording, steps: StepIndex, actor: string, spawned: number, place: number): Taken {
  const at = recording.records[place];
  for (const { index, record } of steps.before(actor, place)) {
    if (record.seq < spawned) return nothing;
    const taken = record.taken ?? [];
    if (index === place) return { now: taken, last: taken };
    const sameCause = at !== undefined && causeOf(at) !== undefined && causeOf(at) === record.cause;
    return { now: sameCause && !isStep(at) ? taken : [], last: taken };
  }
  return nothing;
}

function isStep(record: TraceRecord): boolean {
  return record.kind === 'transition' || record.kind === 'step';
}

function causeOf(record: TraceRecord): number | undefined {
  return 'cause' in record ? record.cause : undefined;
}
