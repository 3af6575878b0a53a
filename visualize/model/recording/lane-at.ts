import type { TraceRecord } from '../../../src/runtime/trace/trace.ts';
import type { Lane, Mark, MarkKind } from './lanes.ts';
import { firstIndexAfter } from './sorted.ts';

const problemKinds: ReadonlySet<MarkKind> = new Set(['departure', 'failure', 'rejected']);

/** The lane of the actor that the record is about or names, else a lane marked at the place. */
export function laneOf(lanes: readonly Lane[], record: TraceRecord | undefined, index: number): string | undefined {
  if (record === undefined) return undefined;
  const eventName = record.kind === 'event' ? record.event.name : undefined;
  const actors = record.kind === 'event' ? [record.to, record.from] : [record.actor];
  const names = [...(typeof eventName === 'string' ? [eventName] : []), ...actors.map((actor) => actor.split('/')[0]!)];
  const actorLane = names.find((name) => lanes.some((lane) => lane.name === name));
  return (
    actorLane ??
    lanes.find(({ marks }) => marks[firstIndexAfter(marks, (mark) => mark.index >= index)]?.index === index)?.name
  );
}

/** The lane with the last bad mark up to a place, else with the first bad mark after it. */
export function laneWithProblemAt(lanes: readonly Lane[], index: number): string | undefined {
  let lastBad: { lane: string; index: number } | undefined;
  let nextProblem: { lane: string; index: number } | undefined;
  for (const { name, marks } of lanes) {
    const nextMarkIndex = firstIndexAfter(marks, (mark) => mark.index > index);
    const lastBadMark = marks.slice(0, nextMarkIndex).findLast(isProblem);
    if (lastBadMark !== undefined && lastBadMark.index >= (lastBad?.index ?? -1))
      lastBad = { lane: name, index: lastBadMark.index };
    const nextProblemMark = marks.find((mark, markIndex) => markIndex >= nextMarkIndex && isProblem(mark));
    if (nextProblemMark !== undefined && nextProblemMark.index < (nextProblem?.index ?? Number.POSITIVE_INFINITY))
      nextProblem = { lane: name, index: nextProblemMark.index };
  }
  return (lastBad ?? nextProblem)?.lane;
}

export function countProblemMarks({ marks }: Lane, from: number, to: number): number {
  const startIndex = firstIndexAfter(marks, ({ t }) => t >= from);
  const endIndex = firstIndexAfter(marks, ({ t }) => t > to);
  let count = 0;
  for (let i = startIndex; i < endIndex; i++) if (isProblem(marks[i]!)) count++;
  return count;
}

function isProblem({ kind }: Mark): boolean {
  return problemKinds.has(kind);
}
