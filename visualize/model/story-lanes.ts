/** Where the records of a story are drawn among the lanes: on the lane of their actor, or of the nearest one above it that has one. */
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { Lane } from './lanes.ts';
import { actorOf } from './words.ts';

/** A point of the path. */
export interface StoryPoint {
  readonly index: number;
  readonly t: number;
  /** Row of its lane; -1 for the axis, where no lane is of anybody it belongs to. */
  readonly row: number;
  /** Its actor has no lane of its own. */
  readonly isFolded: boolean;
}

/** Who started whom, as far as a trace was read. */
export class Parents {
  readonly #parents = new Map<string, string>();
  #read = 0;

  /** Takes in what was added since. */
  grow(records: readonly TraceRecord[]): void {
    for (; this.#read < records.length; this.#read++) {
      const record = records[this.#read]!;
      if (record.kind === 'spawn' && record.parent !== undefined) this.#parents.set(record.actor, record.parent);
    }
  }

  of(actor: string): string | undefined {
    const slash = actor.lastIndexOf('/');
    return this.#parents.get(actor) ?? (slash < 0 ? undefined : actor.slice(0, slash));
  }
}

export function storyPoints(
  places: readonly number[],
  records: readonly TraceRecord[],
  lanes: readonly Lane[],
  parents: Parents,
): StoryPoint[] {
  const rows = new Map(lanes.map(({ name }, row) => [name, row]));
  return places.flatMap((index) => {
    const record = records[index];
    if (record === undefined) return [];
    // What names an epoch is about it, whoever says it to whom.
    const named =
      record.kind === 'event' && typeof record.event.name === 'string' ? rows.get(record.event.name) : undefined;
    const found = named === undefined ? rowOf(actorOf(record), rows, parents) : { row: named, isFolded: false };
    return [{ index, t: record.t, ...found }];
  });
}

function rowOf(
  actor: string,
  rows: ReadonlyMap<string, number>,
  parents: Parents,
): { readonly row: number; readonly isFolded: boolean } {
  const seen = new Set<string>();
  for (let at: string | undefined = actor; at !== undefined && !seen.has(at); at = parents.of(at)) {
    const row = rows.get(at);
    if (row !== undefined) return { row, isFolded: at !== actor };
    seen.add(at);
  }
  return { row: -1, isFolded: true };
}
