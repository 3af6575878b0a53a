/** Random bytes, and mutated valid ones. */
import type { Draw } from '../../random-config/draw.ts';

export function randomBytes(draw: Draw, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => draw.int(0, 255)));
}

/** Applies a few random changes: flips, removals, duplicates, truncations, insertions. */
export function mutatedBytes(draw: Draw, bytes: Uint8Array, maxChanges = 6): Buffer {
  let result: Buffer = Buffer.from(bytes);
  for (let changes = draw.int(1, maxChanges); changes > 0; changes--) result = changedOnce(draw, result);
  return result;
}

function changedOnce(draw: Draw, bytes: Buffer): Buffer {
  if (bytes.length === 0) return randomBytes(draw, draw.int(1, 8));
  const at = draw.int(0, bytes.length - 1);
  const length = Math.min(bytes.length - at, draw.int(1, 32));
  const [head, middle, tail] = [bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at + length)];
  return draw.one(
    () => {
      const flipped = Buffer.from(bytes);
      flipped[at] = flipped[at]! ^ (1 << draw.int(0, 7));
      return flipped;
    },
    () => Buffer.concat([head, tail]),
    () => Buffer.concat([head, middle, middle, tail]),
    () => Buffer.concat([head, randomBytes(draw, draw.int(1, 16)), middle, tail]),
    () => head,
    () => Buffer.concat([head, Buffer.alloc(length, draw.pick([0, 0xff, 0x20])), tail]),
  );
}
