/** Where the records of a story are drawn among the lanes: on the lane of their actor, or of the nearest one above it that has one. */
import { outside } from '../../src/debugger/check/message.ts';
import type { Lane } from './recording/lanes.ts';
import type { Recording } from './recording/recording.ts';
import { actorOf } from './recording/words.ts';

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
  grow(open: Recording): void {
    for (; this.#read < open.length; this.#read++) {
      const parent = open.kindAt(this.#read) === 'spawn' ? open.otherAt(this.#read) : undefined;
      if (parent !== undefined && parent !== outside) this.#parents.set(open.aboutAt(this.#read), parent);
    }
  }

  of(actor: string): string | undefined {
    const slash = actor.lastIndexOf('/');
    return this.#parents.get(actor) ?? (slash < 0 ? undefined : actor.slice(0, slash));
  }
}

export function storyPoints(
  places: readonly number[],
  open: Recording,
  lanes: readonly Lane[],
  parents: Parents,
): StoryPoint[] {
  const rows = new Map(lanes.map(({ name }, row) => [name, row]));
  return places.flatMap((index) => {
    const record = open.recordAt(index);
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
