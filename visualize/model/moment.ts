/** One record and what belongs to it: what the chart answered, what its context became, what was written around then. */
import type { Statechart, StatechartState, StatechartTransition } from '../../src/runtime/trace/statechart.ts';
import type { ActorSnapshot, ContextChange, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { isActive } from '../../src/runtime/trace/trace-state.ts';
import type { Recording } from './recording/recording.ts';
import { actorOf } from './recording/words.ts';

export interface Moment {
  readonly index: number;
  readonly record: TraceRecord;
  /** Whose states and context are told. */
  readonly actor: string;
  /** Before the record, and after it and what the chart answered. */
  readonly before: ActorSnapshot | undefined;
  readonly after: ActorSnapshot | undefined;
  /** What changed in the context from one to the other. */
  readonly changes: readonly ContextChange[];
  /** Places of the steps that the actor took because of it. The record itself, when it is such a step. */
  readonly steps: readonly number[];
  /** Of the actor, whether it runs or has stopped; `undefined` for effects and what is not recorded. */
  readonly machineId: string | undefined;
  readonly machine: Statechart | undefined;
  readonly taken: readonly StatechartTransition[];
  /** Active states that have something to say, outermost first. */
  readonly described: readonly StatechartState[];
}

/** Lines of processes this long before and after a record are shown. */
const logWindowMs = 2_000;

export function momentAt(recording: Recording, index: number): Moment | undefined {
  const record = recording.recordAt(index);
  if (record === undefined) return undefined;
  const actor = actorOf(record);
  const steps = stepsOf(recording, record, index, actor);
  const before = recording.stateAt(index - 1).actors.get(actor);
  const after = recording.stateAt(steps.at(-1) ?? index).actors.get(actor);
  const running = after ?? before;
  const machineId = running?.machine ?? recording.machineOf(actor);
  const machine = recording.header.machines.find(({ id }) => id === machineId);
  const stepped = steps.map((at) => recording.recordAt(at)!).filter(isStep);
  return {
    index,
    record,
    actor,
    before,
    after,
    changes: stepped.flatMap(({ change }) => change ?? []),
    steps,
    machineId,
    machine,
    taken: stepped.flatMap(({ taken }) => taken ?? []).flatMap((number) => machine?.transitions[number] ?? []),
    described:
      machine?.states.filter(
        ({ path, description }) =>
          running !== undefined && description !== undefined && isActive(path, after?.state ?? ''),
      ) ?? [],
  };
}

/** Why no definition is shown; `undefined` if one is. */
export function withoutDefinition({
  actor,
  before,
  after,
  machineId,
  machine,
  taken,
  described,
}: Moment): string | undefined {
  if (machineId === undefined) return `${actor} has no statechart: it is an effect, or it is not recorded.`;
  if (machine === undefined) return `The trace does not contain the statechart of ${machineId}.`;
  if ((after ?? before) === undefined) return `${actor} is not running, so it takes no transition.`;
  return taken.length + described.length === 0 ? 'No transition or description.' : undefined;
}

export interface LoggedLine {
  readonly index: number;
  readonly record: TraceRecord & { kind: 'log' };
  /** Milliseconds from the moment that is looked at; negative before it. */
  readonly awayMs: number;
}

/** Lines of processes around a moment, the nearest first, `limit` at the most; and how many there are. */
export function logsAround(recording: Recording, t: number, limit: number): { lines: LoggedLine[]; all: number } {
  const places = recording.logsBetween(t - logWindowMs, t + logWindowMs);
  const lines = places.map((index) => {
    const record = recording.recordAt(index) as TraceRecord & { kind: 'log' };
    return { index, record, awayMs: record.t - t };
  });
  lines.sort((a, b) => Math.abs(a.awayMs) - Math.abs(b.awayMs) || a.index - b.index);
  return { lines: lines.slice(0, limit), all: lines.length };
}

type StepRecord = TraceRecord & { kind: 'transition' | 'step' };

function isStep(record: TraceRecord): record is StepRecord {
  return record.kind === 'transition' || record.kind === 'step';
}

/** An event, a timer and a spawn are answered by steps that name them as their cause, a few records later. */
function stepsOf(recording: Recording, record: TraceRecord, index: number, actor: string): number[] {
  if (isStep(record)) return [index];
  if (record.kind !== 'event' && record.kind !== 'timer' && record.kind !== 'spawn') return [];
  // By the columns: one record may have led to a million others, of which none is parsed for that.
  return recording.ledTo(record.seq).filter((at) => {
    const kind = recording.kindAt(at);
    return (kind === 'transition' || kind === 'step') && recording.aboutAt(at) === actor;
  });
}
