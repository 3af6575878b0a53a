import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonLines } from './json-lines.ts';
import { ListItems } from './list-items.ts';

function itemsOf(text: string, piece: number, maxBytes?: number): { items: unknown[]; rest: unknown } {
  const items: unknown[] = [];
  const reader = new ListItems((item) => items.push(item), maxBytes);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += piece) reader.push(bytes.subarray(at, at + piece));
  expect(reader.isMidway).toBe(false);
  return { items, rest: reader.end() };
}

describe('items of a list', () => {
  it('equal those of a complete parse for any JSON, however it is split', () => {
    const list = fc.record({ items: fc.array(fc.dictionary(fc.string(), fc.jsonValue())), metadata: fc.jsonValue() });
    fc.assert(
      fc.property(list, fc.integer({ min: 1, max: 40 }), fc.nat(2), ({ items, metadata }, piece, space) => {
        const text = JSON.stringify({ metadata, items, kind: 'List' }, null, space);
        const whole = JSON.parse(text);
        expect(itemsOf(text, piece)).toEqual({ items: whole.items, rest: { ...whole, items: [] } });
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
    const got: unknown[] = [];
    const lines = new JsonLines((line) => got.push(line));
    const list = new ListItems((item) => got.push(item));
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
    expect(got).toEqual([{ a: 'a long text' }, { b: 'another long text' }]);
  });
});

describe('lines of a watch', () => {
  it('contain one value each, however they are split, and an incomplete last line is ignored', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.integer({ min: 1, max: 40 }), (values, piece) => {
        const got: unknown[] = [];
        const lines = new JsonLines((line) => got.push(line));
        const bytes = Buffer.from(`${values.map((value) => `${JSON.stringify(value)}\n`).join('\n')}{"half`);
        for (let at = 0; at < bytes.length; at += piece) lines.push(bytes.subarray(at, at + piece));
        expect(got).toEqual(values.map((value) => JSON.parse(JSON.stringify(value))));
        expect(lines.isMidway).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('have a size limit, whether they are received in one or many chunks', () => {
    const lines = (): JsonLines => new JsonLines(() => {}, 100);
    expect(() => lines().push(Buffer.from(`"${'x'.repeat(200)}"\n`))).toThrow('exceeds 100 bytes');
    const slow = lines();
    expect(() => {
      for (;;) slow.push(Buffer.from('xxxxxxxxxx'));
    }).toThrow('exceeds 100 bytes');
  });
});
