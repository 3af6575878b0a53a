/** Positions of the records of a causal chain among the lanes: on the lane of their actor, or of its nearest ancestor with a lane. */
import { outside } from '../../src/debugger/check/message.ts';
import type { Lane } from './recording/lanes.ts';
import type { PageRecording } from './recording/recording.ts';
import { actorOf } from './recording/words.ts';

export interface ChainPoint {
  readonly index: number;
  readonly t: number;
  /** Row of the lane; -1 for the axis, if no ancestor has a lane. */
  readonly row: number;
  readonly isFolded: boolean;
}

export class Parents {
  readonly #parents = new Map<string, string>();
  #read = 0;

  grow(open: PageRecording): void {
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

export function chainPoints(
  places: readonly number[],
  open: PageRecording,
  lanes: readonly Lane[],
  parents: Parents,
): ChainPoint[] {
  const rows = new Map(lanes.map(({ name }, row) => [name, row]));
  return places.flatMap((index) => {
    const record = open.recordAt(index);
    if (record === undefined) return [];
    // An event that names an epoch belongs to the lane of that epoch, whatever its sender and receiver are.
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
