import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonLines } from './json-lines.ts';
import { ListItems } from './list-items.ts';

function itemsOf(text: string, chunkSize: number, maxBytes?: number): { items: unknown[]; rest: unknown } {
  const items: unknown[] = [];
  const reader = new ListItems((item) => items.push(item), maxBytes);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkSize) reader.push(bytes.subarray(at, at + chunkSize));
  expect(reader.isIncomplete).toBe(false);
  return { items, rest: reader.finish() };
}

describe('items of a list', () => {
  it('equal those of a complete parse for any JSON, however it is split', () => {
    const list = fc.record({ items: fc.array(fc.dictionary(fc.string(), fc.jsonValue())), metadata: fc.jsonValue() });
    fc.assert(
      fc.property(list, fc.integer({ min: 1, max: 40 }), fc.nat(2), ({ items, metadata }, chunkSize, space) => {
        const text = JSON.stringify({ metadata, items, kind: 'List' }, null, space);
        const parsedList = JSON.parse(text);
        expect(itemsOf(text, chunkSize)).toEqual({ items: parsedList.items, rest: { ...parsedList, items: [] } });
      }),
      { numRuns: 100 },
    );
  });

  it('are taken from the outermost list, not from a nested or preceding one', () => {
    const text = '{"metadata": {"items": [1, 2]}, "other": [{"a": 1}], "items": [{"items": [{"b": "]}"}]}], "z": []}';
    expect(itemsOf(text, 3)).toEqual({
      items: [{ items: [{ b: ']}' }] }],
      rest: { metadata: { items: [1, 2] }, other: [{ a: 1 }], items: [], z: [] },
    });
  });

  it('have a size limit individually, but not in total', () => {
    const item = { text: 'x'.repeat(900) };
    const text = JSON.stringify({ items: Array(100).fill(item) });
    expect(itemsOf(text, 64, 1_000).items).toHaveLength(100);
    expect(() => itemsOf(text, 64, 900)).toThrow('exceeds 900 bytes');
    expect(() => itemsOf(text, 10_000_000, 900)).toThrow('exceeds 900 bytes');
  });
});

describe('a chunk of a list', () => {
  it('is not read after it was passed on, because its memory can be reused', () => {
    const receivedItems: unknown[] = [];
    const lines = new JsonLines((line) => receivedItems.push(line));
    const list = new ListItems((item) => receivedItems.push(item));
    for (const [reader, text] of [
      [lines, '{"a": "a long text"}\n'],
      [list, '{"items": [{"b": "another long text"}]}'],
    ] as const) {
      for (let at = 0; at < text.length; at += 7) {
        const chunk = Buffer.from(text.slice(at, at + 7));
        reader.push(chunk);
        chunk.fill(0);
      }
    }
    expect(receivedItems).toEqual([{ a: 'a long text' }, { b: 'another long text' }]);
  });
});

describe('lines of a watch', () => {
  it('contain one value each, however they are split, and an incomplete last line is ignored', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.integer({ min: 1, max: 40 }), (values, chunkSize) => {
        const receivedItems: unknown[] = [];
        const lines = new JsonLines((line) => receivedItems.push(line));
        const bytes = Buffer.from(`${values.map((value) => `${JSON.stringify(value)}\n`).join('\n')}{"half`);
        for (let at = 0; at < bytes.length; at += chunkSize) lines.push(bytes.subarray(at, at + chunkSize));
        expect(receivedItems).toEqual(values.map((value) => JSON.parse(JSON.stringify(value))));
        expect(lines.isIncomplete).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('have a size limit, whether they are received in one or many chunks', () => {
    const lines = (): JsonLines => new JsonLines(() => {}, 100);
    expect(() => lines().push(Buffer.from(`"${'x'.repeat(200)}"\n`))).toThrow('exceeds 100 bytes');
    const slowLines = lines();
    expect(() => {
      for (;;) slowLines.push(Buffer.from('xxxxxxxxxx'));
    }).toThrow('exceeds 100 bytes');
  });
});
