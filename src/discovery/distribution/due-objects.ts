/** Objects whose status should be another, and whether somebody waits for it: gathered during a look, told after it. */
import { setBounded } from '../../model/collections/set-bounded.ts';

/** @param urgent somebody waits for it */
export type DueListener = (keys: readonly string[], urgent: boolean) => void;

/** So often the status of a version of an object is written at once, in so much time; what comes after that rests as everything else. */
const mostEdges = 4;
const edgesMs = 60_000;
/** Objects of which that is known. */
const mostKnown = 4_096;

export class DueObjects {
  readonly #listeners = new Set<DueListener>();
  /** How often each object was told of at once, since when. */
  readonly #edges = new Map<string, { readonly since: number; count: number }>();
  #due = new Map<string, boolean>();

  onDue(listener: DueListener): void {
    this.#listeners.add(listener);
  }

  /**
   * A proxy that comes, rejects and goes again and again is not written of each time.
   *
   * @param isEdge somebody waits for it, unless it was so too often
   */
  note(key: string, isEdge: boolean, now: number): void {
    const known = this.#edges.get(key);
    const edges = known !== undefined && now - known.since < edgesMs ? known : { since: now, count: 0 };
    if (isEdge) edges.count++;
    setBounded(this.#edges, key, edges, mostKnown);
    this.#due.set(key, isEdge && edges.count <= mostEdges);
  }

  /** The object has another version: somebody waits to hear of it. */
  begin(key: string): void {
    this.#edges.delete(key);
  }

  tell(): void {
    const due = this.#due;
    this.#due = new Map();
    for (const [urgent, keys] of Map.groupBy(due.keys(), (key) => due.get(key)!)) {
      for (const listener of this.#listeners) listener(keys, urgent);
    }
  }
}
