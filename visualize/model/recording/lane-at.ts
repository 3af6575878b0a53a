import type { TraceRecord } from '../../../src/runtime/trace/trace.ts';
import type { Lane, Mark, MarkKind } from './lanes.ts';
import { firstAfter } from './sorted.ts';

const badKinds: ReadonlySet<MarkKind> = new Set(['departure', 'failure', 'rejected']);

/** The lane of the actor that the record is about or names, else a lane marked at the place. */
export function laneOf(lanes: readonly Lane[], record: TraceRecord | undefined, index: number): string | undefined {
  if (record === undefined) return undefined;
  const eventName = record.kind === 'event' ? record.event.name : undefined;
  const actors = record.kind === 'event' ? [record.to, record.from] : [record.actor];
  const names = [...(typeof eventName === 'string' ? [eventName] : []), ...actors.map((actor) => actor.split('/')[0]!)];
  const actorLane = names.find((name) => lanes.some((lane) => lane.name === name));
  return (
    actorLane ??
    lanes.find(({ marks }) => marks[firstAfter(marks, (mark) => mark.index >= index)]?.index === index)?.name
  );
}

/** The lane with the last bad mark up to a place, else with the first bad mark after it. */
export function badLaneAt(lanes: readonly Lane[], index: number): string | undefined {
  let lastBad: { lane: string; index: number } | undefined;
  let nextBad: { lane: string; index: number } | undefined;
  for (const { name, marks } of lanes) {
    const nextMark = firstAfter(marks, (mark) => mark.index > index);
    const lastBadMark = marks.slice(0, nextMark).findLast(isBad);
    if (lastBadMark !== undefined && lastBadMark.index >= (lastBad?.index ?? -1))
      lastBad = { lane: name, index: lastBadMark.index };
    const next = marks.find((mark, markIndex) => markIndex >= nextMark && isBad(mark));
    if (next !== undefined && next.index < (nextBad?.index ?? Number.POSITIVE_INFINITY))
      nextBad = { lane: name, index: next.index };
  }
  return (lastBad ?? nextBad)?.lane;
}

export function countBadMarks({ marks }: Lane, from: number, to: number): number {
  const first = firstAfter(marks, ({ t }) => t >= from);
  const end = firstAfter(marks, ({ t }) => t > to);
  let count = 0;
  for (let i = first; i < end; i++) if (isBad(marks[i]!)) count++;
  return count;
}

function isBad({ kind }: Mark): boolean {
  return badKinds.has(kind);
}
