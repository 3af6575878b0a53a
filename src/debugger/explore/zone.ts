/**
 * Time without a clock: the known order of deadlines, as differences between them (a difference bound matrix: Dill 1989, Bengtsson and Yi 2004). A
 * zone stands for every timing in which a run may happen.
 *
 * Bounds are not strict: of two deadlines at the same instant either may be first.
 */

export type DeadlineKind =
  /** An event at exactly that time (a timer). */
  | 'exact'
  /** An event at any time up to the deadline. */
  | 'within'
  /** A time that is only queried and does not limit the passing of time. */
  | 'mark';

interface Deadline {
  readonly name: string;
  readonly kind: DeadlineKind;
}

/** Immutable: every operation returns a new zone. */
export class Zone {
  readonly #deadlines: readonly Deadline[];
  /**
   * `#bounds[i * size + j]`: the maximum by which moment i is later than moment j, in milliseconds. Moment 0 is now.
   */
  readonly #bounds: Float64Array;

  private constructor(deadlines: readonly Deadline[], bounds: Float64Array) {
    this.#deadlines = deadlines;
    this.#bounds = bounds;
  }

  static readonly empty = new Zone([], Float64Array.of(0));

  has(name: string): boolean {
    return this.#deadlines.some((deadline) => deadline.name === name);
  }

  names(kind: DeadlineKind): string[] {
    return this.#deadlines.filter((deadline) => deadline.kind === kind).map(({ name }) => name);
  }

  arm(name: string, ms: number, kind: DeadlineKind = 'exact'): Zone {
    if (this.has(name)) throw new Error(`deadline '${name}' exists already`);
    const size = this.#size;
    const next = new Float64Array((size + 1) ** 2);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) next[i * (size + 1) + j] = this.#bound(i, j);
      next[i * (size + 1) + size] = this.#bound(i, 0) - ms;
      next[size * (size + 1) + i] = this.#bound(0, i) + ms;
    }
    return new Zone([...this.#deadlines, { name, kind }], next);
  }

  cancel(name: string): Zone {
    const removedIndex = this.#indexOf(name);
    if (removedIndex === -1) return this;
    const size = this.#size;
    const next = new Float64Array((size - 1) ** 2);
    let writeIndex = 0;
    for (let i = 0; i < size; i++) {
      if (i === removedIndex) continue;
      for (let j = 0; j < size; j++) if (j !== removedIndex) next[writeIndex++] = this.#bound(i, j);
    }
    return new Zone(this.#deadlines.toSpliced(removedIndex - 1, 1), next);
  }

  /** The new name must be unused. */
  withRenamed(name: string, to: string): Zone {
    if (this.has(to)) throw new Error(`deadline '${to}' exists already`);
    return new Zone(
      this.#deadlines.map((deadline) => (deadline.name === name ? { ...deadline, name: to } : deadline)),
      this.#bounds,
    );
  }

  /** If the new kind is not a mark, only timings remain in which the deadline has not passed. */
  withKind(name: string, kind: DeadlineKind): Zone {
    const index = this.#indexOf(name);
    const next = this.#bounds.slice();
    if (kind !== 'mark') tighten(next, this.#size, 0, index, 0);
    return new Zone(this.#deadlines.with(index - 1, { name, kind }), next);
  }

  /** The timers that may fire next, because no other deadline must precede them. */
  firable(): string[] {
    return this.#deadlines
      .filter(({ kind }, index) => kind === 'exact' && this.#mayBeNext(index + 1))
      .map(({ name }) => name);
  }

  /** The zone at the time of this timer, without the timer. */
  fire(name: string): Zone {
    const fired = this.#indexOf(name);
    const size = this.#size;
    const next = this.#bounds.slice();
    for (let j = 1; j < size; j++) {
      if (j !== fired && this.#deadlines[j - 1]!.kind !== 'mark') tighten(next, size, fired, j, 0);
    }
    tighten(next, size, fired, 0, 0);
    for (let k = 0; k < size; k++) {
      next[k] = next[fired * size + k]!;
      next[k * size] = next[k * size + fired]!;
    }
    next[0] = 0;
    return new Zone(this.#deadlines, next).cancel(name);
  }

  elapse(): Zone {
    const size = this.#size;
    const next = this.#bounds.slice();
    for (let i = 1; i < size; i++) {
      let bound = Number.POSITIVE_INFINITY;
      for (let k = 1; k < size; k++) {
        // Now is not later than deadline k, which limits how much later than deadline i it can be.
        if (this.#deadlines[k - 1]!.kind !== 'mark') bound = Math.min(bound, this.#bound(k, i));
      }
      next[i] = bound;
    }
    return new Zone(this.#deadlines, next);
  }

  /** Whether that moment is in the past, or is now, in every timing. */
  hasPassed(name: string): boolean {
    const index = this.#indexOf(name);
    return index !== -1 && this.#bound(index, 0) <= 0;
  }

  /** The minimum time since that moment; negative before it. */
  sinceMs(name: string): number {
    return 0 - this.#bound(this.#indexOf(name), 0);
  }

  maxElapsedMs(name: string): number {
    return this.#bound(0, this.#indexOf(name));
  }

  /** The age of a passed mark does not affect later events, so the key omits it. */
  key(): string {
    const all = this.#sortedIndexes();
    const order = all.filter((i) => !this.#isPast(i));
    let key = '';
    for (const i of all) {
      key += i === 0 ? 'now' : this.#deadlines[i - 1]!.name;
      if (this.#isPast(i)) key += '!';
      else for (const j of order) if (i !== j) key += `,${this.#bound(i, j)}`;
      key += ';';
    }
    return key;
  }

  /** A key of the order of the deadlines. @param pastIsPast whether the age of a passed mark is ignored */
  orderKey(pastIsPast = false): string {
    const all = this.#sortedIndexes().filter((i) => i !== 0);
    const order = pastIsPast ? all.filter((i) => !this.#isPast(i)) : all;
    let key = '';
    for (const i of all) {
      const isPast = this.#isPast(i);
      key += this.#deadlines[i - 1]!.name;
      if (isPast) key += '!';
      if (!isPast || !pastIsPast) for (const j of order) if (i !== j) key += this.#bound(j, i) >= 0 ? '+' : '-';
      key += ';';
    }
    return key;
  }

  get #size(): number {
    return this.#deadlines.length + 1;
  }

  #bound(i: number, j: number): number {
    return this.#bounds[i * this.#size + j]!;
  }

  #indexOf(name: string): number {
    const index = this.#deadlines.findIndex((deadline) => deadline.name === name);
    return index === -1 ? -1 : index + 1;
  }

  #mayBeNext(index: number): boolean {
    for (let j = 1; j < this.#size; j++) {
      if (this.#deadlines[j - 1]!.kind !== 'mark' && this.#bound(j, index) < 0) return false;
    }
    return true;
  }

  #isPast(i: number): boolean {
    return i > 0 && this.#deadlines[i - 1]!.kind === 'mark' && this.#bound(i, 0) <= 0;
  }

  #sortedIndexes(): number[] {
    const nameOf = (i: number): string => (i === 0 ? '' : this.#deadlines[i - 1]!.name);
    return Array.from({ length: this.#size }, (_, i) => i).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  }
}

/** Adds the constraint "moment i is at most `bound` later than moment j" and its consequences. */
function tighten(bounds: Float64Array, size: number, i: number, j: number, bound: number): void {
  if (bounds[i * size + j]! <= bound) return;
  for (let a = 0; a < size; a++) {
    for (let b = 0; b < size; b++) {
      const boundVia = bounds[a * size + i]! + bound + bounds[j * size + b]!;
      if (boundVia < bounds[a * size + b]!) bounds[a * size + b] = boundVia;
    }
  }
}
