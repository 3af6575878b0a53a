import { describe, expect, it, vi } from 'vitest';
import { JsonLines } from '../transport/json-lines.ts';
import { ListItems } from '../transport/list-items.ts';
import { excessOf, maxContainers, maxDistinctTexts, ObjectScan } from './object-scan.ts';

const metadata = {
  name: 'x"\\{\u00e9',
  namespace: 'shop',
  uid: 'u1',
  resourceVersion: '7',
  generation: 3,
  labels: { 'istio.io/rev': 'a' },
};
const map = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'x']));
const objectOf = (fields: object) => ({
  kind: 'ProxyConfig',
  spec: { metadata: { name: 'other' }, type: 'T', kind: 'K' },
  metadata: { ownerReferences: [{ name: 'owner', uid: 'o' }], ...metadata, managedFields: [{ name: 'm' }] },
  status: { metadata: { name: 'other' } },
  ...fields,
});

/** Passes the text in chunks, as they arrive from a server. */
function push(parser: JsonLines | ListItems, text: string, pieceBytes = 10_000): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) parser.push(bytes.subarray(at, at + pieceBytes));
}

function watchEventOf(object: object, type = 'ADDED'): { type: string; object: Record<string, unknown> } {
  const lines: unknown[] = [];
  push(new JsonLines((line) => lines.push(line)), `${JSON.stringify({ type, object })}\n`);
  return lines[0] as never;
}

function listItemOf(object: object): Record<string, unknown> {
  const items: unknown[] = [];
  const list = JSON.stringify({ kind: 'List', metadata: { resourceVersion: '9' }, items: [objectOf({}), object] });
  push(new ListItems((item) => items.push(item)), list);
  return items[1] as never;
}

describe('the scan of a large object', () => {
  it('rejects an object with too many distinct names without parsing it, and keeps its metadata and the reason', () => {
    const object = objectOf({ spec: { environmentVariables: map(maxDistinctTexts + 10) } });
    const event = watchEventOf(object, 'MODIFIED');
    expect(event).toMatchObject({ type: 'MODIFIED', object: { kind: 'ProxyConfig', metadata } });
    for (const one of [event.object, listItemOf(object)]) {
      expect(one).not.toHaveProperty('spec');
      expect(one.metadata).toEqual(metadata);
      expect(excessOf(one)).toContain(`the limit is ${maxDistinctTexts}`);
      expect(excessOf(one)).toContain('LIMIT_EXCEEDED');
    }
  });

  it('counts lists, maps, names of labels and short strings in lists', () => {
    const texts = Array.from({ length: maxDistinctTexts + 10 }, (_, i) => `n${i}`);
    const scannedTexts = watchEventOf(objectOf({ spec: { exportTo: texts } })).object;
    expect(excessOf(scannedTexts)).toContain('short strings');
    const labels = map(maxDistinctTexts + 10);
    const scannedLabels = watchEventOf(objectOf({ metadata: { ...metadata, labels } })).object;
    const { labels: _, ...otherMetadata } = metadata;
    expect([excessOf(scannedLabels) !== undefined, scannedLabels.metadata]).toEqual([true, otherMetadata]);
    const lists = Array.from({ length: maxContainers + 1 }, () => []);
    expect(excessOf(listItemOf(objectOf({ spec: { lists } })))).toContain('lists and maps');
  });

  it('rejects an object even if the hashes of 22 names collide under one of the random multipliers', () => {
    const bytes = Buffer.from(JSON.stringify({ object: { spec: map(maxDistinctTexts + 10) } }));
    const [weak, usualSeed] = [13_737_671 / 2 ** 31, 0.3];
    for (const seeds of [
      [weak, usualSeed],
      [usualSeed, weak],
    ] as const) {
      const random = vi.spyOn(Math, 'random');
      for (const value of seeds) random.mockReturnValueOnce(value);
      const scan = new ObjectScan(1);
      random.mockRestore();
      scan.push(bytes);
      expect(scan.excessText).toContain(`the limit is ${maxDistinctTexts}`);
    }
  });

  it('leaves an object unchanged if it is within the limits', () => {
    const items = Array.from({ length: 4_096 }, (_, i) => ({
      address: `10.0.${i >> 8}.${i & 255}`,
      labels: { version: `v${i}`, text: 'a\\"b{[,:' },
    }));
    const object = objectOf({ spec: { items, long: 'x'.repeat(100_000), 'a"b': map(4_096) } });
    for (const one of [watchEventOf(object).object, listItemOf(object)]) {
      expect(one).toEqual(object);
      expect(excessOf(one)).toBeUndefined();
    }
  });

  it('accepts any number of repeated names and long strings', () => {
    const rules = Array.from({ length: 20_000 }, (_, i) => ({ from: [{ source: `spiffe://td/ns/a/sa/${i}` }] }));
    const object = objectOf({ spec: { rules } });
    expect(watchEventOf(object).object).toEqual(object);
  });

  it('restarts its counts for the next object', () => {
    const lines: { object: object }[] = [];
    const parser = new JsonLines((line) => lines.push(line as never));
    const largeEvent = { type: 'ADDED', object: objectOf({ spec: map(maxDistinctTexts + 10) }) };
    const goodEvent = { type: 'ADDED', object: objectOf({ spec: { text: 'x'.repeat(100_000) } }) };
    push(parser, `${JSON.stringify(largeEvent)}\n${JSON.stringify(goodEvent)}\n`);
    expect(lines.map(({ object }) => excessOf(object) !== undefined)).toEqual([true, false]);
    expect(lines[1]).toEqual(goodEvent);
  });
});
