import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { formatTraceLine } from '../../runtime/trace/trace.ts';
import { fileSource } from '../visualize/file-source.ts';
import { LineSplitter, LineTooLong, maxLineLength } from './line-splitter.ts';
import { openTrace } from './read-trace.ts';

let folder: string | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  if (folder !== undefined) rmSync(folder, { recursive: true });
  folder = undefined;
});

function linesIn(chunks: readonly string[]): string[] {
  const splitter = new LineSplitter();
  const lines: string[] = [];
  for (const chunk of chunks) {
    splitter.push(chunk);
    for (let line = splitter.nextLine(); line !== undefined; line = splitter.nextLine()) lines.push(line);
  }
  return [...lines, splitter.takeRemainder()];
}

test('LineSplitter returns the same lines regardless of chunk boundaries', () => {
  const anyChunk = fc.string({ unit: fc.constantFrom('a', 'ä', '\r', '\n') });
  fc.assert(
    fc.property(fc.array(anyChunk), (chunks) => {
      expect(linesIn(chunks)).toEqual(chunks.join('').split('\n'));
    }),
  );
});

test('LineSplitter throws an error for an endless line', () => {
  const splitter = new LineSplitter();
  const longChunk = 'x'.repeat(1024 * 1024);
  for (let length = 0; length < maxLineLength; length += longChunk.length) {
    splitter.push(longChunk);
    expect(splitter.nextLine()).toBeUndefined();
  }
  splitter.push('x');
  expect(() => splitter.nextLine()).toThrow(LineTooLong);
});

/** A trace file with a second line of this size in MiB. */
async function fileWith(megabytes: number): Promise<string> {
  folder ??= mkdtempSync(join(tmpdir(), 'chartpilot-lines-'));
  const path = join(folder, `${megabytes}.trace`);
  const text = function* (): Generator<string> {
    yield formatTraceLine(headerWith({ program: 'pilot-agent', pid: 7 }));
    for (let count = 0; count < megabytes; count++) yield 'x'.repeat(1024 * 1024);
  };
  await pipeline(Readable.from(text()), createWriteStream(path));
  return path;
}

/** Number of characters and bytes of strings and buffers that were searched or copied. */
async function workOf(readAll: () => Promise<unknown>): Promise<number> {
  let work = 0;
  const { indexOf, split } = String.prototype;
  const { concat } = Buffer;
  vi.spyOn(String.prototype, 'indexOf').mockImplementation(function (this: string, searched, from = 0) {
    if (searched === '\n') work += this.length - from;
    return indexOf.call(this, searched, from);
  });
  vi.spyOn(String.prototype, 'split').mockImplementation(function (this: string, ...args: unknown[]) {
    work += this.length;
    return Reflect.apply(split, this, args) as string[];
  });
  vi.spyOn(Buffer, 'concat').mockImplementation((list, length) => {
    const joinedBuffer = length === undefined ? concat.call(Buffer, list) : concat.call(Buffer, list, length);
    work += joinedBuffer.length;
    return joinedBuffer as ReturnType<typeof Buffer.concat>;
  });
  await readAll();
  vi.restoreAllMocks();
  return work;
}

describe('the cost of reading a long line is that of many short lines of the same total size', () => {
  const mebibyte = 1024 * 1024;
  const readers: [string, (path: string) => Promise<unknown>][] = [
    [
      'for a command that reads a trace',
      async (path) => {
        for await (const _ of (await openTrace(path)).records);
      },
    ],
    [
      'for the server of the page',
      async (path) => {
        for await (const _ of await fileSource(path).read({ follow: false }));
      },
    ],
  ];
  test.each(readers)('%s', async (_, read) => {
    const [smallFile, largeFile] = [await fileWith(8), await fileWith(32)];
    expect(await workOf(() => read(smallFile))).toBeLessThan(4 * 8 * mebibyte);
    expect(await workOf(() => read(largeFile))).toBeLessThan(4 * 32 * mebibyte);
  });
});

test('a command rejects a line of 100 MB, and the page server sends it unchanged', async () => {
  const path = await fileWith(100);
  const openedTrace = await openTrace(path);
  await expect(openedTrace.records[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: 'TRACE_INVALID',
    message: expect.stringContaining(
      `${path}:2: the line is longer than 64 million characters, so it is not a trace record`,
    ),
  });
  let bytes = 0;
  for await (const chunk of await fileSource(path).read({ follow: false })) bytes += (chunk as Buffer).length;
  expect(bytes).toBeGreaterThan(maxLineLength);
});
