/** An immutable sorted list, stored in blocks, so that a new version copies only changed blocks. */
import type { Steps } from '../../runtime/turns.ts';
import { sortInSteps } from './sorting.ts';

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

  /** @param compare returns 0 only for identical items */
  static of<T>(items: readonly T[], compare: (a: T, b: T) => number): SortedList<T> {
    return SortedList.#fromSorted(items.toSorted(compare), compare);
  }

  static *buildInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<SortedList<T>> {
    return SortedList.#fromSorted(yield* sortInSteps(items, compare), compare);
  }

  static #fromSorted<T>(sortedItems: readonly T[], compare: (a: T, b: T) => number): SortedList<T> {
    const blocks: T[][] = [];
    for (let start = 0; start < sortedItems.length; start += maxBlockItems / 2) {
      blocks.push(sortedItems.slice(start, start + maxBlockItems / 2));
    }
    return new SortedList(blocks, sortedItems.length, compare);
  }

  get items(): readonly T[] {
    this.#items ??= this.#blocks.length === 1 ? this.#blocks[0]! : ([] as T[]).concat(...this.#blocks);
    return this.#items;
  }

  withEdits(removedItems: readonly T[], addedItems: readonly T[]): SortedList<T> {
    if (removedItems.length + addedItems.length > maxSingleEdits) {
      const removedSet = new Set(removedItems);
      return SortedList.of([...this.items.filter((item) => !removedSet.has(item)), ...addedItems], this.#compare);
    }
    const blocks = [...this.#blocks];
    for (const item of removedItems) this.#removeItem(blocks, item);
    for (const item of addedItems) this.#put(blocks, item);
    return new SortedList(blocks, this.length - removedItems.length + addedItems.length, this.#compare);
  }

  #removeItem(blocks: (readonly T[])[], item: T): void {
    const blockIndex = this.#blockOf(blocks, item);
    const block = blocks[blockIndex]!;
    const remainingItems = block.toSpliced(insertionIndex(block, item, this.#compare), 1);
    const nextBlock = blocks[blockIndex + 1];
    // Joins small neighbours, so that a shrinking list does not fragment.
    if (nextBlock !== undefined && remainingItems.length + nextBlock.length <= maxBlockItems / 2)
      blocks.splice(blockIndex, 2, [...remainingItems, ...nextBlock]);
    else if (remainingItems.length === 0) blocks.splice(blockIndex, 1);
    else blocks[blockIndex] = remainingItems;
  }

  #put(blocks: (readonly T[])[], item: T): void {
    if (blocks.length === 0) {
      blocks.push([item]);
      return;
    }
    const blockIndex = this.#blockOf(blocks, item);
    const block = blocks[blockIndex]!;
    const largerBlock = block.toSpliced(insertionIndex(block, item, this.#compare), 0, item);
    if (largerBlock.length <= maxBlockItems) blocks[blockIndex] = largerBlock;
    else blocks.splice(blockIndex, 1, largerBlock.slice(0, maxBlockItems / 2), largerBlock.slice(maxBlockItems / 2));
  }

  #blockOf(blocks: readonly (readonly T[])[], item: T): number {
    let [lowBlock, highBlock] = [0, blocks.length];
    while (lowBlock < highBlock) {
      const middle = (lowBlock + highBlock) >> 1;
      if (this.#compare(blocks[middle]![0]!, item) <= 0) lowBlock = middle + 1;
      else highBlock = middle;
    }
    return Math.max(0, lowBlock - 1);
  }
}

/** An edit copies one block. */
const maxBlockItems = 512;

const maxSingleEdits = 64;

function insertionIndex<T>(block: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let [lowIndex, highIndex] = [0, block.length];
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >> 1;
    if (compare(block[middle]!, item) < 0) lowIndex = middle + 1;
    else highIndex = middle;
  }
  return lowIndex;
}
