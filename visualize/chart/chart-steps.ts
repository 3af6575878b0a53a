/** Which steps an actor took, and when; the chart view shows the last one. */
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording/recording.ts';

export type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

const stepKinds = ['transition', 'step'] as const;

/** The last steps of an actor at a place, newest first. May include steps of an earlier actor with this name. */
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

/** Whether an actor took a step after one place and not after another. */
export function hasStepped(recording: Recording, actor: string, after: number, upTo: number): boolean {
  return recording.lastAbout(actor, stepKinds, upTo + 1, after + 1) !== undefined;
}

/** Numbers of taken transitions. */
export interface Taken {
  /** Taken by the record at the place, or by the actor with the same cause. */
  readonly now: readonly number[];
  /** Taken by its last step before that, which led to its state. */
  readonly last: readonly number[];
}

const nothing: Taken = { now: [], last: [] };

/** The transitions that an actor took at a place; `spawned` is the number of its spawn. */
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
