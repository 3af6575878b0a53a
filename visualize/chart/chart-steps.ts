/** Which steps an actor took, and when: the chart view asks for the one just taken. */
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording/recording.ts';

export type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

const stepKinds = ['transition', 'step'] as const;

/** The last steps of an actor at a place, newest first. Steps of one that had the name before may be among them. */
export function* stepsBefore(
  recording: Recording,
  actor: string,
  place: number,
): Generator<{ index: number; record: StepRecord }> {
  let index = recording.lastAbout(actor, stepKinds, place + 1);
  while (index !== undefined) {
    yield { index, record: recording.recordAt(index) as StepRecord };
    index = recording.lastAbout(actor, stepKinds, index);
  }
}

/** Whether an actor took a step behind one place, and not behind another. */
export function hasStepped(recording: Recording, actor: string, after: number, upTo: number): boolean {
  return recording.lastAbout(actor, stepKinds, upTo + 1, after + 1) !== undefined;
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
export function takenAt(recording: Recording, actor: string, spawned: number, place: number): Taken {
  const at = recording.recordAt(place);
  for (const { index, record } of stepsBefore(recording, actor, place)) {
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
