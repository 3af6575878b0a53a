import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { PageRecording } from '../model/recording/recording.ts';

export type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

const stepKinds = ['transition', 'step'] as const;

/** Newest first. May include steps of an earlier actor with the same name. */
export function* stepsBefore(
  recording: PageRecording,
  actor: string,
  recordIndex: number,
): Generator<{ index: number; record: StepRecord }> {
  let index = recording.lastIndexAbout(actor, stepKinds, recordIndex + 1);
  while (index !== undefined) {
    yield { index, record: recording.recordAt(index) as StepRecord };
    index = recording.lastIndexAbout(actor, stepKinds, index);
  }
}

/** The range excludes `afterIndex` and includes `lastIndex`. */
export function hasStepped(recording: PageRecording, actor: string, afterIndex: number, lastIndex: number): boolean {
  return recording.lastIndexAbout(actor, stepKinds, lastIndex + 1, afterIndex + 1) !== undefined;
}

export interface TakenTransitions {
  /** Transitions of the record at the place, or of the actor's steps with the same cause. */
  readonly currentNumbers: readonly number[];
  /** Transitions that led to the current state. */
  readonly previousNumbers: readonly number[];
}

const noTransitions: TakenTransitions = { currentNumbers: [], previousNumbers: [] };

/** @param spawnIndex `seq` of the actor's spawn */
export function takenTransitionsAt(
  recording: PageRecording,
  actor: string,
  spawnIndex: number,
  recordIndex: number,
): TakenTransitions {
  const currentRecord = recording.recordAt(recordIndex);
  for (const { index, record } of stepsBefore(recording, actor, recordIndex)) {
    if (record.seq < spawnIndex) return noTransitions;
    const takenNumbers = record.taken ?? [];
    if (index === recordIndex) return { currentNumbers: takenNumbers, previousNumbers: takenNumbers };
    const hasSameCause =
      currentRecord !== undefined && causeOf(currentRecord) !== undefined && causeOf(currentRecord) === record.cause;
    return {
      currentNumbers: hasSameCause && !isStepRecord(currentRecord) ? takenNumbers : [],
      previousNumbers: takenNumbers,
    };
  }
  return noTransitions;
}

function isStepRecord(record: TraceRecord): boolean {
  return record.kind === 'transition' || record.kind === 'step';
}

function causeOf(record: TraceRecord): number | undefined {
  return 'cause' in record ? record.cause : undefined;
}
