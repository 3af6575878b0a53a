import type { RecordedRun } from '../trace/record-list.ts';
import { unfinishedMark } from './restart-spans.ts';
import type { OtlpSpan } from './span.ts';

/** Further states of the root actor are omitted. */
const maxStates = 1_000;

/** A foreign program has a trace for each root actor, with a span for each state of the actor and its descendants. */
export function lifeSpans({ records }: RecordedRun): OtlpSpan[] {
  const spans: OtlpSpan[] = [];
  const lives = new Map<string, { trace: string; from: number; seq: number; states: number }>();
  const states = new Map<string, { name: string; from: number }>();
  const end = records.at(-1)?.t ?? 0;

  const leave = (actor: string, to: number, isOver: boolean): void => {
    const state = states.get(actor);
    states.delete(actor);
    const life = lives.get(actor.split('/')[0]!);
    if (state === undefined || life === undefined || ++life.states > maxStates) return;
    const key = `${life.states}`;
    const attributes = { 'chartpilot.actor': actor, ...(!isOver && unfinishedMark) };
    spans.push({ trace: life.trace, key, parent: '', name: state.name, from: state.from, to, attributes });
  };
  const end_ = (actor: string, to: number, error: string | undefined, isOver: boolean): void => {
    leave(actor, to, isOver);
    const life = lives.get(actor);
    if (life === undefined) return;
    lives.delete(actor);
    const attributes = { 'chartpilot.actor': actor, 'chartpilot.trace.seq': life.seq, ...(!isOver && unfinishedMark) };
    const root = { trace: life.trace, key: '', name: actor, from: life.from, to, attributes };
    spans.push(error === undefined ? root : { ...root, error });
  };

  for (const record of records) {
    if (record.kind === 'spawn' && record.parent === undefined) {
      const { actor, t, seq } = record;
      lives.set(actor, { trace: `life ${seq}`, from: t, seq, states: 0 });
    }
    if (record.kind === 'transition') {
      leave(record.actor, record.t, true);
      states.set(record.actor, { name: record.to, from: record.t });
    }
    if (record.kind === 'stop') end_(record.actor, record.t, record.error, true);
  }
  for (const actor of [...states.keys()]) leave(actor, end, false);
  for (const actor of [...lives.keys()]) end_(actor, end, undefined, false);
  return spans;
}
