import { describe, expect, test } from 'vitest';
import { changedFile, markOf, meshFlavors, serviceFiles } from './mesh-files.ts';

const size = { services: 3, endpoints: 4 };

describe.each(meshFlavors)('a service of the %s mesh', (flavor) => {
  test('is files of one object each', () => {
    const files = Object.entries(serviceFiles(2, { ...size, flavor }));
    expect(files).toHaveLength(flavor === 'istio' ? 3 : 4);
    for (const [, text] of files) expect(text.match(/^kind: /gm)).toHaveLength(1);
  });

  test('has its mark where the change is, and nothing else is different', () => {
    const mark = markOf(7);
    for (const change of ['endpoint', 'route'] as const) {
      const [name, text] = changedFile(change, mark, { ...size, flavor });
      expect(text.split(mark)).toHaveLength(2);
      expect(serviceFiles(0, { ...size, flavor })[name]).toBeDefined();
      expect(serviceFiles(0, { ...size, flavor })[name]).not.toContain(mark);
    }
  });
});

test('marks are addresses, each its own, none the beginning of another', () => {
  const marks = Array.from({ length: 2_000 }, (_, i) => markOf(i));
  expect(new Set(marks).size).toBe(marks.length);
  for (const mark of marks) expect(mark).toMatch(/^172\.\d\d\.1\d\d\.\d{2,3}$/);
});
