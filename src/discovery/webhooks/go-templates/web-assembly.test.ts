import { expect, test } from 'vitest';
import { compile, instantiate, withMemoryLimit } from './web-assembly.ts';

const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
/** A module with type section, memory section and an exported memory. */
const moduleOf = (...limits: number[]): Uint8Array =>
  Uint8Array.from([
    ...header,
    1,
    1,
    0,
    5,
    limits.length + 1,
    1,
    ...limits,
    7,
    10,
    1,
    6,
    ...Buffer.from('memory'),
    2,
    0,
  ]);

test('a module with a memory limit cannot exceed it', async () => {
  const { exports } = await instantiate(await compile(withMemoryLimit(moduleOf(0, 2), 1)), {});
  const { memory } = exports;
  expect(memory.buffer.byteLength).toBe(2 * 65_536);
  memory.grow(14);
  expect(() => memory.grow(1)).toThrow(RangeError);
});

test.each([
  ['is not WebAssembly', Uint8Array.from([1, 2, 3])],
  ['has no memory', Uint8Array.from(header)],
  ['already has a memory maximum', moduleOf(1, 2, 3)],
  ['starts with more memory than the limit', moduleOf(0, 17)],
  ['is truncated', moduleOf(0, 2).subarray(0, 12)],
])('a module is rejected if it %s', (_, bytes) => {
  expect(() => withMemoryLimit(bytes, 1)).toThrow();
});
