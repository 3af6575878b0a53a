/** A record of a causal chain is on the lane of its actor, or of the actor's nearest ancestor with a lane. */
import { outsideActor } from '../../src/debugger/check/message.ts';
import type { Lane } from './recording/lanes.ts';
import type { PageRecording } from './recording/recording.ts';
import { actorOf } from './recording/words.ts';

export interface ChainPoint {
  readonly index: number;
  readonly t: number;
  /** -1 for the axis. */
  readonly row: number;
  readonly isFolded: boolean;
}

export class Parents {
  readonly #parents = new Map<string, string>();
  #read = 0;

  grow(openRecording: PageRecording): void {
    for (; this.#read < openRecording.length; this.#read++) {
      const parent = openRecording.kindAt(this.#read) === 'spawn' ? openRecording.otherActorAt(this.#read) : undefined;
      if (parent !== undefined && parent !== outsideActor)
        this.#parents.set(openRecording.subjectAt(this.#read), parent);
    }
  }

  parentOf(actor: string): string | undefined {
    const slash = actor.lastIndexOf('/');
    return this.#parents.get(actor) ?? (slash < 0 ? undefined : actor.slice(0, slash));
  }
}

export function chainPoints(
  recordIndexes: readonly number[],
  openRecording: PageRecording,
  lanes: readonly Lane[],
  parents: Parents,
): ChainPoint[] {
  const rowByLane = new Map(lanes.map(({ name }, row) => [name, row]));
  return recordIndexes.flatMap((index) => {
    const record = openRecording.recordAt(index);
    if (record === undefined) return [];
    // An event that names an epoch belongs to that epoch's lane, regardless of sender and receiver.
    const namedRow =
      record.kind === 'event' && typeof record.event.name === 'string' ? rowByLane.get(record.event.name) : undefined;
    const actorRow =
      namedRow === undefined ? rowOf(actorOf(record), rowByLane, parents) : { row: namedRow, isFolded: false };
    return [{ index, t: record.t, ...actorRow }];
  });
}

function rowOf(
  actor: string,
  rowByLane: ReadonlyMap<string, number>,
  parents: Parents,
): { readonly row: number; readonly isFolded: boolean } {
  const visitedActors = new Set<string>();
  for (
    let currentActor: string | undefined = actor;
    currentActor !== undefined && !visitedActors.has(currentActor);
    currentActor = parents.parentOf(currentActor)
  ) {
    const row = rowByLane.get(currentActor);
    if (row !== undefined) return { row, isFolded: currentActor !== actor };
    visitedActors.add(currentActor);
  }
  return { row: -1, isFolded: true };
}
