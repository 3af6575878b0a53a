import { describe, expect, it, vi } from 'vitest';
import { explainYamlDocument, parseYamlDocument, splitDocuments } from './yaml-document.ts';

describe('cutting a stream into documents', () => {
  it('cuts at marker lines only, and knows the line on which each part begins', () => {
    const text = 'a: 1\n---\nb: |\n  --- not a marker\n--- # a marker\nc: 1';
    expect(splitDocuments(text).map((part) => [part.line, parseYamlDocument(part).value])).toEqual([
      [1, { a: 1 }],
      [2, { b: '--- not a marker\n' }],
      [5, { c: 1 }],
    ]);
  });

  it('leaves comments and directives with the document that they are of', () => {
    const parts = splitDocuments('# licence\n\n%YAML 1.2\n---\na: 1\n');
    expect(parts).toHaveLength(1);
    expect(parseYamlDocument(parts[0]!).value).toEqual({ a: 1 });
  });

  it('loses no character of the text', () => {
    const text = '---\n---\na: 1\r\n---\r\nb: 2\n...\n---\n';
    expect(
      splitDocuments(text)
        .map((part) => part.text)
        .join(''),
    ).toBe(text);
  });
});

describe('a YAML document', () => {
  const document = parseYamlDocument({ text: 'a:\n  b:\n  - c: 1\n    "x.y": {d: 2}\n', line: 10 });

  it.each([
    ['a.b[0].c', 12, 5],
    ['a.b[0]["x.y"].d', 13, 13],
    ['a.b[0]', 12, 5],
    ['a.missing.deeper', 10, 1],
    ['a.b[7]', 11, 3],
    ['', 10, 1],
  ])('knows where %s is, or the deepest part of it', (path, line, column) => {
    expect(document.positionOf(path)).toEqual({ line, column });
  });

  it('tells mistakes of syntax with their place and still reads what it can', () => {
    const broken = parseYamlDocument({ text: 'kind: X\nkind: Y\nlist: [1', line: 5 });
    expect(broken.mistakes.map(({ line }) => line)).toEqual([6, 7]);
    expect(broken.value).toMatchObject({ list: [1] });
  });

  it('refuses an alias without an anchor instead of throwing', () => {
    expect(parseYamlDocument({ text: 'a: *nothing', line: 1 }).mistakes).toHaveLength(1);
  });

  it('follows merge keys and aliases', () => {
    const merged = parseYamlDocument({ text: 'base: &b {x: 1}\nover: {<<: *b, y: 2}\nsame: *b\n', line: 1 });
    expect(merged.value).toMatchObject({ over: { x: 1, y: 2 }, same: { x: 1 } });
    expect(merged.positionOf('same.x').line).toBe(1);
  });
});

it('a key that is no text is told of by whoever reads the value, not by a warning of the process', () => {
  const warnings: string[] = [];
  const hear = (warning: string | Error): void => void warnings.push(String(warning));
  vi.spyOn(process, 'emitWarning').mockImplementation(hear as never);
  parseYamlDocument({ text: '? [a, b]\n: c\n', line: 1 });
  explainYamlDocument({ text: '? [a, b]\n: c\n', line: 1 });
  vi.restoreAllMocks();
  expect(warnings).toEqual([]);
});
