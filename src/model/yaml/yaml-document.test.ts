import { describe, expect, it, vi } from 'vitest';
import { threadCpuMsOf } from '../../../test/harness/cpu-time.ts';
import { explainYamlDocument, parseYamlDocument, splitDocuments } from './yaml-document.ts';

describe('splitting a YAML stream into documents', () => {
  it('splits only at marker lines, and returns the first line of each document', () => {
    const text = 'a: 1\n---\nb: |\n  --- not a marker\n--- # a marker\nc: 1';
    expect(splitDocuments(text).map((part) => [part.line, parseYamlDocument(part).value])).toEqual([
      [1, { a: 1 }],
      [2, { b: '--- not a marker\n' }],
      [5, { c: 1 }],
    ]);
  });

  it('keeps comments and directives with their document', () => {
    const parts = splitDocuments('# licence\n\n%YAML 1.2\n---\na: 1\n');
    expect(parts).toHaveLength(1);
    expect(parseYamlDocument(parts[0]!).value).toEqual({ a: 1 });
  });

  it('preserves every character of the text', () => {
    const text = '---\n---\na: 1\r\n---\r\nb: 2\n...\n---\n';
    expect(
      splitDocuments(text)
        .map((part) => part.text)
        .join(''),
    ).toBe(text);
  });

  it('skips blank lines before the first marker without extra CPU time', () => {
    const text = `${'\n'.repeat(28)}a: 1\n---\nb: 1\n`;
    expect(threadCpuMsOf(() => expect(splitDocuments(text)).toHaveLength(2))).toBeLessThan(1_000);
  });
});

describe('YAML documents that are expensive to parse', () => {
  const levels = 200_000;
  const repeatLine = (count: number, line: (index: number) => string): string =>
    Array.from({ length: count }, (_, i) => line(i)).join('');

  it.each([
    ['lists on one line', `a: 1\nb: ${'['.repeat(levels)}${']'.repeat(levels)}\n`, 2],
    ['unclosed lists', `a: 1\nb: ${'['.repeat(levels)}`, 2],
    ['nested lists', `a:\n ${'- '.repeat(levels)}1\n`, 2],
    ['nested block maps', repeatLine(2_000, (level) => `${' '.repeat(level)}a:\n`), 100],
    ['lists in a document with a tab', `a: 1\t# x\nb: ${'['.repeat(levels)}${']'.repeat(levels)}\n`, 2],
  ])('are rejected because of their depth: %s', (_, text, line) => {
    expect(parseYamlDocument({ text, line: 1 }).errors).toMatchObject([
      { line, message: 'nested deeper than 100 levels' },
    ]);
  });

  it('identify their object even if they are nested too deeply', () => {
    const text = `kind: AuthorizationPolicy\nmetadata: {name: a}\nspec:\n  a: ${'['.repeat(levels)}`;
    expect(parseYamlDocument({ text, line: 1 }).value).toMatchObject({
      kind: 'AuthorizationPolicy',
      metadata: { name: 'a' },
    });
  });

  it.each([
    ['a list', 'a: 1\nb: &b [x, [*b]]\n', 2, 12],
    ['a map', 'a: &a\n  b:\n    c: *a\n', 3, 8],
    ['a merged map', 'a: &a\n  b: {<<: *a}\n', 2, 11],
    ['an unclosed document', 'a: &a {b: *a}\nc: [\n', 1, 11],
  ])('are rejected if an alias is inside its own anchor: %s', (_, text, line, column) => {
    const { errors, value } = parseYamlDocument({ text, line: 1 });
    expect(errors).toContainEqual({ line, column, message: expect.stringContaining('a value that contains it') });
    expect(() => JSON.stringify(value)).not.toThrow();
  });

  it('are rejected if each anchor is used twice, and identify their object', () => {
    const doubled = repeatLine(45, (i) => `a${i + 1}: &a${i + 1} [&b${i} [*a${i}], *b${i}]\n`);
    const text = `kind: AuthorizationPolicy\nmetadata: {name: a}\na0: &a0 [x]\n${doubled}spec: *a45\n`;
    expect(parseYamlDocument({ text, line: 1 })).toMatchObject({
      errors: [{ line: 4, message: expect.stringContaining('aliases expand to more than 100000 values') }],
      value: { kind: 'AuthorizationPolicy', metadata: { name: 'a' } },
    });
  });

  it('are rejected if aliases make a value too deep', () => {
    const text = `a0: &a0 [x]\n${repeatLine(101, (i) => `a${i + 1}: &a${i + 1} [*a${i}]\n`)}`;
    expect(parseYamlDocument({ text, line: 1 }).errors).toMatchObject([
      { line: 2, message: expect.stringContaining('nested deeper than 100 levels') },
    ]);
  });

  it('are accepted if hundreds of aliases refer to a small value', () => {
    const text = `a: &a [1]\nb:\n${repeatLine(900, () => '- *a\n')}`;
    const { errors, value } = parseYamlDocument({ text, line: 1 });
    expect([errors, (value as { b: unknown[] }).b.length]).toEqual([[], 900]);
  });

  it('are rejected if aliases expand exponentially', () => {
    const text = `a0: &a0 [x, x]\n${repeatLine(40, (i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]\n`)}`;
    expect(parseYamlDocument({ text, line: 1 }).errors).toMatchObject([{ message: expect.stringContaining('alias') }]);
  });

  it('are rejected if many aliases would each require a search among many anchors', () => {
    const text = repeatLine(2_000, (i) => `k${i}: &a${i} 1\n`) + repeatLine(2_000, (i) => `l${i}: *a${i}\n`);
    const message = 'more than 1000 aliases in one document';
    expect(parseYamlDocument({ text, line: 1 }).errors).toMatchObject([{ message }]);
    expect(parseYamlDocument({ text: `${text}x: [`, line: 1 }).errors).toMatchObject([{ message }]);
  });

  it('are parsed by the fast parser only if they are long', () => {
    const item = '- {a: "b", c: [1, 2, 3]}\n';
    const text = `kind: List\nitems:\n${item.repeat(8_000)}`;
    const document = parseYamlDocument({ text: `# \t\n${text}`, line: 1 });
    expect(document.errors).toEqual([]);
    expect(document.positionOf('items[7999].c[2]')).toEqual({ line: 8_003, column: 22 });
    expect(parseYamlDocument({ text: `${text}- &a x\n`, line: 1 }).errors).toMatchObject([
      { message: expect.stringMatching(/must not have an anchor or a tag; split it into several documents/) },
    ]);
    expect(parseYamlDocument({ text: `${text}- {\n- x\n`, line: 1 })).toMatchObject({
      value: { kind: 'List' },
      errors: [{ line: 8_004 }],
    });
  });

  it('are rejected with only the first errors if there are very many', () => {
    const text = repeatLine(500, (i) => `a: ${i}\n`);
    expect(parseYamlDocument({ text, line: 1 }).errors).toHaveLength(50);
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
  ])('returns the position of %s, or of its deepest existing parent', (path, line, column) => {
    expect(document.positionOf(path)).toEqual({ line, column });
  });

  it('reports syntax errors with positions, and returns the readable part', () => {
    const brokenDocument = parseYamlDocument({ text: 'kind: X\nkind: Y\nlist: [1', line: 5 });
    expect(brokenDocument.errors.map(({ line }) => line)).toEqual([6, 7]);
    expect(brokenDocument.value).toMatchObject({ list: [1] });
  });

  it('rejects an alias without an anchor, and does not throw', () => {
    expect(parseYamlDocument({ text: 'a: *nothing', line: 1 }).errors).toHaveLength(1);
  });

  it('supports merge keys and aliases', () => {
    const mergedDocument = parseYamlDocument({ text: 'base: &b {x: 1}\nover: {<<: *b, y: 2}\nsame: *b\n', line: 1 });
    expect(mergedDocument.value).toMatchObject({ over: { x: 1, y: 2 }, same: { x: 1 } });
    expect(mergedDocument.positionOf('same.x').line).toBe(1);
  });
});

it('a key that is not a string is left to the decoder, without a process warning', () => {
  const warnings: string[] = [];
  const onWarning = (warning: string | Error): void => void warnings.push(String(warning));
  vi.spyOn(process, 'emitWarning').mockImplementation(onWarning as never);
  parseYamlDocument({ text: '? [a, b]\n: c\n', line: 1 });
  explainYamlDocument({ text: '? [a, b]\n: c\n', line: 1 });
  vi.restoreAllMocks();
  expect(warnings).toEqual([]);
});
