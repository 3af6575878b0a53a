/** Divides resources into blocks of parts. Resources that differ in one part share the bytes of all other blocks. */
import { hashOf } from '../../model/collections/persistent-map.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import type { Part } from './part.ts';

export interface NamedPart extends Part {
  readonly name: string;
  readonly number: number;
}

let lastNumber = 0;

export class PartBlock<P extends Part = Part> {
  readonly number = ++lastNumber;
  readonly fieldNumber: number;
  readonly parts: readonly P[];
  #bytes: Uint8Array | undefined;

  constructor(fieldNumber: number, blockParts: readonly P[]) {
    this.fieldNumber = fieldNumber;
    this.parts = blockParts;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= encodeBlock(this.fieldNumber, this.parts);
    return this.#bytes;
  }

  get retainedBytes(): number {
    return this.#bytes?.length ?? 0;
  }
}

/** Smaller blocks do not justify a separate write, and larger ones are expensive to encode again. */
const minParts = 4;
const maxParts = 64;
const partsToEnd = 16;

/**
 * Ends blocks at parts whose names have a certain hash, so that lists which differ in one part share all other
 * blocks.
 */
export function splitIntoBlocks<P extends NamedPart>(
  fieldNumber: number,
  blockParts: readonly P[],
): readonly PartBlock<P>[] {
  const blocks: PartBlock<P>[] = [];
  let start = 0;
  blockParts.forEach(({ name }, index) => {
    const size = index + 1 - start;
    const isBlockEnd = size >= maxParts || (size >= minParts && hashOf(name) % partsToEnd === 0);
    if (!isBlockEnd && index + 1 < blockParts.length) return;
    blocks.push(sharedBlock(fieldNumber, blockParts.slice(start, index + 1)));
    start = index + 1;
  });
  return blocks;
}

const blocksOfParts = new WeakValues<PartBlock<never>>();
const cachedLists = new WeakValues<readonly PartBlock<never>[]>();

/** Returns an equal block if one is still referenced. */
export function sharedBlock<P extends NamedPart>(fieldNumber: number, blockParts: readonly P[]): PartBlock<P> {
  const key = `${fieldNumber} ${numbersText(blockParts)}`;
  const cachedBlock = blocksOfParts.get(key) as PartBlock<P> | undefined;
  if (cachedBlock?.fieldNumber === fieldNumber && sameItems(cachedBlock.parts, blockParts)) return cachedBlock;
  const block = new PartBlock(fieldNumber, blockParts);
  blocksOfParts.set(key, block as unknown as PartBlock<never>);
  return block;
}

export function sharedList<P extends Part>(blocks: readonly PartBlock<P>[]): readonly PartBlock<P>[] {
  const key = numbersText(blocks);
  const cachedBlocks = cachedLists.get(key) as readonly PartBlock<P>[] | undefined;
  if (cachedBlocks !== undefined && sameItems(cachedBlocks, blocks)) return cachedBlocks;
  cachedLists.set(key, blocks as unknown as readonly PartBlock<never>[]);
  return blocks;
}

function numbersText(items: readonly { readonly number: number }[]): string {
  let hash = 0;
  for (const { number } of items) hash = (Math.imul(hash, 31) + number) | 0;
  return `${items.length} ${hash}`;
}

/** Uses a separate buffer, because a slice would retain Node's buffer pool. */
function encodeBlock(fieldNumber: number, blockParts: readonly Part[]): Uint8Array {
  const byteChunks: Uint8Array[] = [];
  for (const { chunks } of blockParts) byteChunks.push(lengthDelimited(fieldNumber, totalLength(chunks)), ...chunks);
  const bytes = Buffer.allocUnsafeSlow(totalLength(byteChunks));
  let position = 0;
  for (const byteChunk of byteChunks) {
    bytes.set(byteChunk, position);
    position += byteChunk.length;
  }
  return bytes;
}

function totalLength(byteChunks: readonly Uint8Array[]): number {
  return byteChunks.reduce((sum, { length }) => sum + length, 0);
}

function lengthDelimited(fieldNumber: number, length: number): Uint8Array {
  const bytes: number[] = [];
  for (let value of [(fieldNumber << 3) | 2, length]) {
    while (value > 127) {
      bytes.push((value & 127) | 128);
      value >>>= 7;
    }
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}
