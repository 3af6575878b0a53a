import type { Statechart, StatechartState, StatechartTransition } from '../../src/runtime/trace/statechart.ts';
import type { ActorSnapshot, ContextChange, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { isActiveState } from '../../src/runtime/trace/trace-state.ts';
import type { PageRecording } from './recording/recording.ts';
import { actorOf } from './recording/words.ts';

export interface Moment {
  readonly index: number;
  readonly record: TraceRecord;
  readonly actor: string;
  readonly stateBefore: ActorSnapshot | undefined;
  readonly stateAfter: ActorSnapshot | undefined;
  readonly changes: readonly ContextChange[];
  /** Indexes of the steps that the record caused, or of the record itself if it is a step. */
  readonly stepIndexes: readonly number[];
  /** `undefined` for effects and unrecorded machines. */
  readonly machineId: string | undefined;
  readonly machine: Statechart | undefined;
  readonly takenTransitions: readonly StatechartTransition[];
  /** Outermost first. */
  readonly describedStates: readonly StatechartState[];
}

const logWindowMs = 2_000;

export function momentAt(recording: PageRecording, index: number): Moment | undefined {
  const record = recording.recordAt(index);
  if (record === undefined) return undefined;
  const actor = actorOf(record);
  const steps = stepsOf(recording, record, index, actor);
  const stateBefore = recording.stateAt(index - 1).actors.get(actor);
  const stateAfter = recording.stateAt(steps.at(-1) ?? index).actors.get(actor);
  const currentState = stateAfter ?? stateBefore;
  const machineId = currentState?.machine ?? recording.machineOf(actor);
  const machine = recording.header.machines.find(({ id }) => id === machineId);
  const stepped = steps.map((stepIndex) => recording.recordAt(stepIndex)!).filter(isStepRecord);
  return {
    index,
    record,
    actor,
    stateBefore,
    stateAfter,
    changes: stepped.flatMap(({ change }) => change ?? []),
    stepIndexes: steps,
    machineId,
    machine,
    takenTransitions: stepped
      .flatMap(({ taken }) => taken ?? [])
      .flatMap((number) => machine?.transitions[number] ?? []),
    describedStates:
      machine?.states.filter(
        ({ path, description }) =>
          currentState !== undefined && description !== undefined && isActiveState(path, stateAfter?.state ?? ''),
      ) ?? [],
  };
}

export function missingDefinitionReason({
  actor,
  stateBefore,
  stateAfter,
  machineId,
  machine,
  takenTransitions,
  describedStates,
}: Moment): string | undefined {
  if (machineId === undefined) return `${actor} has no statechart: it is an effect, or it is not recorded.`;
  if (machine === undefined) return `The trace does not contain the statechart of ${machineId}.`;
  if ((stateAfter ?? stateBefore) === undefined) return `${actor} is not running, so it takes no transition.`;
  return takenTransitions.length + describedStates.length === 0 ? 'No transition or description.' : undefined;
}

export interface LoggedLine {
  readonly index: number;
  readonly record: TraceRecord & { kind: 'log' };
  /** Negative before the current moment. */
  readonly awayMs: number;
}

export function nearbyLogs(
  recording: PageRecording,
  t: number,
  limit: number,
): { lines: LoggedLine[]; totalCount: number } {
  const logIndexes = recording.logsBetween(t - logWindowMs, t + logWindowMs);
  const lines = logIndexes.map((index) => {
    const record = recording.recordAt(index) as TraceRecord & { kind: 'log' };
    return { index, record, awayMs: record.t - t };
  });
  lines.sort((a, b) => Math.abs(a.awayMs) - Math.abs(b.awayMs) || a.index - b.index);
  return { lines: lines.slice(0, limit), totalCount: lines.length };
}

type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

function isStepRecord(record: TraceRecord): record is StepRecord {
  return record.kind === 'transition' || record.kind === 'step';
}

/** Steps follow their cause a few records later. */
function stepsOf(recording: PageRecording, record: TraceRecord, index: number, actor: string): number[] {
  if (isStepRecord(record)) return [index];
  if (record.kind !== 'event' && record.kind !== 'timer' && record.kind !== 'spawn') return [];
  // One record may have a million consequences, which need not be parsed.
  return recording.consequencesOf(record.seq).filter((consequenceIndex) => {
    const kind = recording.kindAt(consequenceIndex);
    return (kind === 'transition' || kind === 'step') && recording.subjectAt(consequenceIndex) === actor;
  });
}
