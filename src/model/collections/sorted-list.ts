/**
 * An immutable list in order whose next version costs what changed, not all items: it is cut into blocks, and the blocks
 * that an edit does not touch are shared. As one array it is made when somebody asks for that, once.
 */
import type { Steps } from '../../runtime/turns.ts';
import { sorting } from './sorting.ts';

export class SortedList<T> {
  readonly length: number;
  readonly #blocks: readonly (readonly T[])[];
  readonly #compare: (a: T, b: T) => number;
  #items: readonly T[] | undefined;

  private constructor(blocks: readonly (readonly T[])[], length: number, compare: (a: T, b: T) => number) {
    this.#blocks = blocks;
    this.length = length;
    this.#compare = compare;
  }

  /** @param compare 0 for an item alone: no two of a list are of the same place */
  static of<T>(items: readonly T[], compare: (a: T, b: T) => number): SortedList<T> {
    return SortedList.#ofSorted(items.toSorted(compare), compare);
  }

  /** The same in steps. */
  static *making<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<SortedList<T>> {
    return SortedList.#ofSorted(yield* sorting(items, compare), compare);
  }

  static #ofSorted<T>(sorted: readonly T[], compare: (a: T, b: T) => number): SortedList<T> {
    const blocks: T[][] = [];
    for (let start = 0; start < sorted.length; start += mostItems / 2) {
      blocks.push(sorted.slice(start, start + mostItems / 2));
    }
    return new SortedList(blocks, sorted.length, compare);
  }

  /** All of them as one array, the same each time. */
  get items(): readonly T[] {
    this.#items ??= this.#blocks.length === 1 ? this.#blocks[0]! : ([] as T[]).concat(...this.#blocks);
    return this.#items;
  }

  /** This list without some of its items and with others. */
  edited(gone: readonly T[], added: readonly T[]): SortedList<T> {
    if (gone.length + added.length > mostSingleEdits) {
      const without = new Set(gone);
      return SortedList.of([...this.items.filter((item) => !without.has(item)), ...added], this.#compare);
    }
    const blocks = [...this.#blocks];
    for (const item of gone) this.#drop(blocks, item);
    for (const item of added) this.#put(blocks, item);
    return new SortedList(blocks, this.length - gone.length + added.length, this.#compare);
  }

  #drop(blocks: (readonly T[])[], item: T): void {
    const at = this.#blockOf(blocks, item);
    const block = blocks[at]!;
    const left = block.toSpliced(placeOf(block, item, this.#compare), 1);
    const next = blocks[at + 1];
    // Small blocks are joined: a list that shrank is not left in crumbs.
    if (next !== undefined && left.length + next.length <= mostItems / 2) blocks.splice(at, 2, [...left, ...next]);
    else if (left.length === 0) blocks.splice(at, 1);
    else blocks[at] = left;
  }

  #put(blocks: (readonly T[])[], item: T): void {
    if (blocks.length === 0) {
      blocks.push([item]);
      return;
    }
    const at = this.#blockOf(blocks, item);
    const block = blocks[at]!;
    const more = block.toSpliced(placeOf(block, item, this.#compare), 0, item);
    if (more.length <= mostItems) blocks[at] = more;
    else blocks.splice(at, 1, more.slice(0, mostItems / 2), more.slice(mostItems / 2));
  }

  /** The last that does not begin after the item; else the first. */
  #blockOf(blocks: readonly (readonly T[])[], item: T): number {
    let [low, high] = [0, blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(blocks[middle]![0]!, item) <= 0) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

/** Items of a block: as many as are copied for one edit. */
const mostItems = 512;

/** Edits that are made one by one; with more at once the list is made anew. */
const mostSingleEdits = 64;

/** Index of the first that is not before the item. */
function placeOf<T>(block: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let [low, high] = [0, block.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(block[middle]!, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
