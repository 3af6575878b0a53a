import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { PageRecording } from '../model/recording/recording.ts';

export type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

const stepKinds = ['transition', 'step'] as const;

/** The last steps of an actor at a place, newest first. May include steps of an earlier actor with the same name. */
export function* stepsBefore(
  recording: PageRecording,
  actor: string,
  place: number,
): Generator<{ index: number; record: StepRecord }> {
  let index = recording.lastIndexAbout(actor, stepKinds, place + 1);
  while (index !== undefined) {
    yield { index, record: recording.recordAt(index) as StepRecord };
    index = recording.lastIndexAbout(actor, stepKinds, index);
  }
}

/** Whether an actor took a step after the place `after`, up to and including `upTo`. */
export function hasStepped(recording: PageRecording, actor: string, after: number, upTo: number): boolean {
  return recording.lastIndexAbout(actor, stepKinds, upTo + 1, after + 1) !== undefined;
}

/** Numbers of taken transitions. */
export interface TakenTransitions {
  /** Transitions of the record at the place, or of the actor's steps with the same cause. */
  readonly now: readonly number[];
  /** Transitions of the step before them, which led to the current state. */
  readonly last: readonly number[];
}

const noTransitions: TakenTransitions = { now: [], last: [] };

/** The transitions of an actor at a place. `spawned` is the `seq` of its spawn. */
export function takenAt(recording: PageRecording, actor: string, spawned: number, place: number): TakenTransitions {
  const at = recording.recordAt(place);
  for (const { index, record } of stepsBefore(recording, actor, place)) {
    if (record.seq < spawned) return noTransitions;
    const taken = record.taken ?? [];
    if (index === place) return { now: taken, last: taken };
    const sameCause = at !== undefined && causeOf(at) !== undefined && causeOf(at) === record.cause;
    return { now: sameCause && !isStep(at) ? taken : [], last: taken };
  }
  return noTransitions;
}

function isStep(record: TraceRecord): boolean {
  return record.kind === 'transition' || record.kind === 'step';
}

function causeOf(record: TraceRecord): number | undefined {
  return 'cause' in record ? record.cause : undefined;
}
