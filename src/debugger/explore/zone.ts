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
    const nextBounds = new Float64Array((size + 1) ** 2);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) nextBounds[i * (size + 1) + j] = this.#bound(i, j);
      nextBounds[i * (size + 1) + size] = this.#bound(i, 0) - ms;
      nextBounds[size * (size + 1) + i] = this.#bound(0, i) + ms;
    }
    return new Zone([...this.#deadlines, { name, kind }], nextBounds);
  }

  cancel(name: string): Zone {
    const removedIndex = this.#indexOf(name);
    if (removedIndex === -1) return this;
    const size = this.#size;
    const nextBounds = new Float64Array((size - 1) ** 2);
    let writeIndex = 0;
    for (let i = 0; i < size; i++) {
      if (i === removedIndex) continue;
      for (let j = 0; j < size; j++) if (j !== removedIndex) nextBounds[writeIndex++] = this.#bound(i, j);
    }
    return new Zone(this.#deadlines.toSpliced(removedIndex - 1, 1), nextBounds);
  }

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
    const nextBounds = this.#bounds.slice();
    if (kind !== 'mark') tighten(nextBounds, this.#size, 0, index, 0);
    return new Zone(this.#deadlines.with(index - 1, { name, kind }), nextBounds);
  }

  /** The timers that may fire next, because no other deadline must precede them. */
  firableTimers(): string[] {
    return this.#deadlines
      .filter(({ kind }, index) => kind === 'exact' && this.#canFireNext(index + 1))
      .map(({ name }) => name);
  }

  /** The zone at the time of this timer, without the timer. */
  fire(name: string): Zone {
    const firedIndex = this.#indexOf(name);
    const size = this.#size;
    const nextBounds = this.#bounds.slice();
    for (let j = 1; j < size; j++) {
      if (j !== firedIndex && this.#deadlines[j - 1]!.kind !== 'mark') tighten(nextBounds, size, firedIndex, j, 0);
    }
    tighten(nextBounds, size, firedIndex, 0, 0);
    for (let k = 0; k < size; k++) {
      nextBounds[k] = nextBounds[firedIndex * size + k]!;
      nextBounds[k * size] = nextBounds[k * size + firedIndex]!;
    }
    nextBounds[0] = 0;
    return new Zone(this.#deadlines, nextBounds).cancel(name);
  }

  elapse(): Zone {
    const size = this.#size;
    const nextBounds = this.#bounds.slice();
    for (let i = 1; i < size; i++) {
      let bound = Number.POSITIVE_INFINITY;
      for (let k = 1; k < size; k++) {
        // The current time cannot exceed deadline k, so it exceeds deadline i by at most as much as deadline k does.
        if (this.#deadlines[k - 1]!.kind !== 'mark') bound = Math.min(bound, this.#bound(k, i));
      }
      nextBounds[i] = bound;
    }
    return new Zone(this.#deadlines, nextBounds);
  }

  /** Whether the deadline is in the past, or is now, in every timing. */
  isOverdue(name: string): boolean {
    const index = this.#indexOf(name);
    return index !== -1 && this.#bound(index, 0) <= 0;
  }

  /** The minimum time since the deadline; negative before it. */
  minElapsedMs(name: string): number {
    return 0 - this.#bound(this.#indexOf(name), 0);
  }

  maxElapsedMs(name: string): number {
    return this.#bound(0, this.#indexOf(name));
  }

  /** The age of a passed mark does not affect later events, so the key omits it. */
  key(): string {
    const sortedIndexes = this.#sortedIndexes();
    const currentIndexes = sortedIndexes.filter((i) => !this.#isOverdueIndex(i));
    let key = '';
    for (const i of sortedIndexes) {
      key += i === 0 ? 'now' : this.#deadlines[i - 1]!.name;
      if (this.#isOverdueIndex(i)) key += '!';
      else for (const j of currentIndexes) if (i !== j) key += `,${this.#bound(i, j)}`;
      key += ';';
    }
    return key;
  }

  /** A key of the order of the deadlines. @param pastIsPast whether the age of a passed mark is ignored */
  orderKey(pastIsPast = false): string {
    const sortedIndexes = this.#sortedIndexes().filter((i) => i !== 0);
    const comparedIndexes = pastIsPast ? sortedIndexes.filter((i) => !this.#isOverdueIndex(i)) : sortedIndexes;
    let key = '';
    for (const i of sortedIndexes) {
      const isPast = this.#isOverdueIndex(i);
      key += this.#deadlines[i - 1]!.name;
      if (isPast) key += '!';
      if (!isPast || !pastIsPast)
        for (const j of comparedIndexes) if (i !== j) key += this.#bound(j, i) >= 0 ? '+' : '-';
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

  #canFireNext(index: number): boolean {
    for (let j = 1; j < this.#size; j++) {
      if (this.#deadlines[j - 1]!.kind !== 'mark' && this.#bound(j, index) < 0) return false;
    }
    return true;
  }

  #isOverdueIndex(i: number): boolean {
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
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const boundVia = bounds[row * size + i]! + bound + bounds[j * size + column]!;
      if (boundVia < bounds[row * size + column]!) bounds[row * size + column] = boundVia;
    }
  }
}
