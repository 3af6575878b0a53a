import type { RecordedRun } from '../trace/record-list.ts';
import { unfinishedMark } from './restart-spans.ts';
import type { OtlpSpan } from './span.ts';

/** Further states of the root actor are omitted. */
const maxStates = 1_000;

/** A foreign program has a trace for each root actor, with a span for each state of the actor and its descendants. */
export function lifeSpans({ records }: RecordedRun): OtlpSpan[] {
  const spans: OtlpSpan[] = [];
  const openLives = new Map<string, { trace: string; from: number; seq: number; states: number }>();
  const states = new Map<string, { name: string; from: number }>();
  const endTime = records.at(-1)?.t ?? 0;

  const closeState = (actor: string, to: number, hasActorEnded: boolean): void => {
    const state = states.get(actor);
    states.delete(actor);
    const life = openLives.get(actor.split('/')[0]!);
    if (state === undefined || life === undefined || ++life.states > maxStates) return;
    const key = `${life.states}`;
    const attributes = { 'chartpilot.actor': actor, ...(!hasActorEnded && unfinishedMark) };
    spans.push({ trace: life.trace, key, parent: '', name: state.name, from: state.from, to, attributes });
  };
  const endLife = (actor: string, to: number, error: string | undefined, hasActorEnded: boolean): void => {
    closeState(actor, to, hasActorEnded);
    const life = openLives.get(actor);
    if (life === undefined) return;
    openLives.delete(actor);
    const attributes = {
      'chartpilot.actor': actor,
      'chartpilot.trace.seq': life.seq,
      ...(!hasActorEnded && unfinishedMark),
    };
    const root = { trace: life.trace, key: '', name: actor, from: life.from, to, attributes };
    spans.push(error === undefined ? root : { ...root, error });
  };

  for (const record of records) {
    if (record.kind === 'spawn' && record.parent === undefined) {
      const { actor, t, seq } = record;
      openLives.set(actor, { trace: `life ${seq}`, from: t, seq, states: 0 });
    }
    if (record.kind === 'transition') {
      closeState(record.actor, record.t, true);
      states.set(record.actor, { name: record.to, from: record.t });
    }
    if (record.kind === 'stop') endLife(record.actor, record.t, record.error, true);
  }
  for (const actor of [...states.keys()]) closeState(actor, endTime, false);
  for (const actor of [...openLives.keys()]) endLife(actor, endTime, undefined, false);
  return spans;
}
