import { expect, test } from 'vitest';
import { compile, instantiate, withMemoryLimit } from './web-assembly.ts';

const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
/** Type section, memory section and export of the memory. */
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

test('a module whose memory has a limit cannot grow beyond it', async () => {
  const { exports } = await instantiate(await compile(withMemoryLimit(moduleOf(0, 2), 1)), {});
  const { memory } = exports;
  expect(memory.buffer.byteLength).toBe(2 * 65_536);
  memory.grow(14);
  expect(() => memory.grow(1)).toThrow(RangeError);
});

test.each([
  ['no WebAssembly', Uint8Array.from([1, 2, 3])],
  ['a module without memory', Uint8Array.from(header)],
  ['a module whose memory has a maximum', moduleOf(1, 2, 3)],
  ['a module that needs more', moduleOf(0, 17)],
  ['a module that is cut off', moduleOf(0, 2).subarray(0, 12)],
])('%s is rejected', (_, bytes) => {
  expect(() => withMemoryLimit(bytes, 1)).toThrow();
});
