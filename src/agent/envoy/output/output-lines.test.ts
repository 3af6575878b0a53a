import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { readLineChunks, readLines } from './output-lines.ts';

/** Reads output that arrives in these chunks. */
async function read(chunks: readonly Uint8Array[]): Promise<{ lines: string[]; whole: Buffer[] }> {
  const stream = new PassThrough();
  const lines: string[] = [];
  const wholeChunks: Buffer[] = [];
  const read = Promise.all([
    readLines(stream, (line) => lines.push(line)),
    readLineChunks(stream, (bytes) => void wholeChunks.push(bytes)),
  ]);
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await read;
  return { lines, whole: wholeChunks };
}

test('emits complete, unchanged lines regardless of chunk boundaries', async () => {
  const texts = fc.array(fc.constantFrom('a', 'ä€𝄞', '\n', '\n\n', 'long '.repeat(50), '\xff'));
  await fc.assert(
    fc.asyncProperty(texts, fc.array(fc.nat(200)), async (texts, cuts) => {
      const bytes = Buffer.from(texts.join(''));
      const offsets = [
        0,
        ...cuts.map((cutOffset) => Math.min(cutOffset, bytes.length)).sort((a, b) => a - b),
        bytes.length,
      ];
      const { lines, whole } = await read(offsets.slice(1).map((to, i) => bytes.subarray(offsets[i], to)));
      const text = bytes.toString();
      const endedText = text === '' || text.endsWith('\n') ? text : `${text}\n`;
      expect(lines.map((line) => `${line}\n`).join('')).toBe(endedText);
      expect(Buffer.concat(whole).toString()).toBe(endedText);
      for (const wholeChunk of whole) expect(wholeChunk.at(-1)).toBe(10);
    }),
  );
});

test('keeps bytes that are not UTF-8 unchanged', async () => {
  const bytes = Buffer.from([0xff, 0x00, 0x80, 0x0a]);
  expect(Buffer.concat((await read([bytes])).whole)).toEqual(bytes);
});

test('splits an endless line in bounded memory', async () => {
  const chunk = Buffer.alloc(40_000, 'x');
  const { lines } = await read(Array.from({ length: 10 }, () => chunk));
  expect(lines.map((line) => line.length)).toEqual([80_000, 80_000, 80_000, 80_000, 80_000]);
});

test('continues to read the pipe if lines could not be written', async () => {
  const stream = new PassThrough();
  const chunks: string[] = [];
  const ended = readLineChunks(stream, (bytes) => {
    chunks.push(bytes.toString());
    return Promise.reject(new Error('cannot be written'));
  });
  stream.write('first\n');
  await eventually('the first line is read', () => chunks.length === 1);
  stream.end('second\n');
  await ended;
  expect(chunks).toEqual(['first\n', 'second\n']);
});
