import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { serviceFiles } from '../../../test/bench/push/mesh-files.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { explainYamlDocument, splitDocuments } from './yaml-document.ts';
import { readEvents } from './yaml-fast.ts';
import { readSimpleDocument } from './yaml-simple.ts';

function documentsIn(directory: string): string[] {
  const folder = join(packageRoot(), directory);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'));
  return files.flatMap((name) => splitDocuments(readFileSync(join(folder, name), 'utf8')).map(({ text }) => text));
}

/** Handwritten and generated documents. */
const real = [
  ...documentsIn('examples/mesh'),
  ...documentsIn('test/networking/cases'),
  ...Object.values(serviceFiles(1, { endpoints: 3, flavor: 'istio' })),
  ...Object.values(serviceFiles(2, { endpoints: 3, flavor: 'kubernetes' })),
];

/** Whether an accepted document has the same value, errors and positions in both complete parsers. */
function agrees(text: string): boolean {
  const simple = readSimpleDocument(text);
  if (simple === undefined) return false;
  const read = readEvents(text);
  if ('reason' in read) throw new Error(`${read.reason}, ${read.message}: ${text}`);
  expect(simple.value, text).toStrictEqual(read.value);
  expect(simple.start, text).toBe(read.offsetOf([]));
  const explained = explainYamlDocument({ text, line: 1 });
  expect(explained.errors, text).toEqual([]);
  expect(explained.value, text).toEqual(simple.value);
  return true;
}

const snippets = [
  ...[
    '',
    ' ',
    '  ',
    '\n',
    ':',
    ': ',
    '- ',
    '-',
    '#',
    ' #',
    '"',
    "'",
    '[',
    ']',
    '{',
    '}',
    ',',
    ', ',
    '|',
    '>',
    '&a ',
    '*a',
  ],
  ...[
    '!',
    '%',
    '@',
    '`',
    '?',
    '? ',
    '~',
    '<<: ',
    '\t',
    '\r',
    '\\',
    '.',
    '/',
    '0',
    '1e3',
    '1e999',
    '\\\n\n',
    '-1',
    '0x1',
    'true',
    'null',
    'é',
  ],
  ...[
    '---\n',
    '...\n',
    '\n\n',
    '\n  ',
    '\n- ',
    'a: ',
    'a:',
    '__proto__: ',
    '{}',
    '[]',
    '[a, b]',
    '{a: 1}',
    '# c\n',
    '\u0000',
  ],
];

/** A few edits at character positions, each with the length of the replaced text. */
const edits = fc.array(
  fc.record({ at: fc.nat(), length: fc.constantFrom(0, 0, 1, 1, 2, 5), piece: fc.constantFrom(...snippets) }),
  { minLength: 1, maxLength: 4 },
);

const lineEdits = fc.array(
  fc.record({ line: fc.nat(), to: fc.nat(), how: fc.constantFrom('in', 'out', 'twice', 'gone', 'moved') }),
  { minLength: 1, maxLength: 3 },
);

const edited = fc
  .record({ text: fc.constantFrom(...real), edits, lineEdits, byLines: fc.boolean() })
  .map(({ text, edits: textEdits, lineEdits: lineMoves, byLines }) => {
    if (byLines) return withLines(text, lineMoves);
    let now = text;
    for (const { at, length, piece } of textEdits) {
      const position = at % (now.length + 1);
      now = now.slice(0, position) + piece + now.slice(position + length);
    }
    return now;
  });

function withLines(text: string, lineMoves: readonly { line: number; to: number; how: string }[]): string {
  const lines = text.split('\n');
  for (const { line, to, how } of lineMoves) {
    const at = line % lines.length;
    const oldLine = lines[at]!;
    if (how === 'in') lines[at] = ` ${oldLine}`;
    else if (how === 'out') lines[at] = oldLine.replace(/^ /, '');
    else if (how === 'twice') lines.splice(at, 0, oldLine);
    else if (how === 'gone') lines.splice(at, 1);
    else lines.splice(to % lines.length, 0, ...lines.splice(at, 1));
  }
  return lines.join('\n');
}

/** Short texts of YAML syntax. */
const noise = fc
  .array(fc.constantFrom(...snippets, 'a', 'b: c', 'key:\n', '  x: 1\n'), { maxLength: 12 })
  .map((all) => all.join(''));

describe('the simple YAML parser', () => {
  it('accepts most handwritten and generated documents', () => {
    const acceptedTexts = real.filter((text) => agrees(text));
    expect(acceptedTexts.length / real.length).toBeGreaterThan(0.5);
    for (const text of Object.values(serviceFiles(1, { endpoints: 3, flavor: 'istio' })))
      expect(agrees(text)).toBe(true);
  });

  it('returns the same result as the other parsers for edited documents', () => {
    let acceptedCount = 0;
    fc.assert(
      fc.property(edited, (text) => void (agrees(text) && acceptedCount++)),
      { numRuns: 3_000 },
    );
    // Ensures that enough documents are accepted, because the test would otherwise prove nothing.
    expect(acceptedCount).toBeGreaterThan(300);
  });

  it('returns the same result as the other parsers for random syntax', () => {
    fc.assert(
      fc.property(noise, (text) => void agrees(`a: ${text}`)),
      { numRuns: 3_000 },
    );
    fc.assert(
      fc.property(noise, (text) => void agrees(text)),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [
      'a list with the indentation of its key',
      'a:\n- 1\n- b: 2\n  c:\n  - d\ne: f\n',
      { a: [1, { b: 2, c: ['d'] }], e: 'f' },
    ],
    ['comments and empty lines', '# head\n---\n\na: b # c\n  # d\n\ne: "#f" # g\n', { a: 'b', e: '#f' }],
    [
      'flow lists and flow maps',
      "a: [b, 'c d', {e: 1.5, f: []}]\ng: {}\n",
      { a: ['b', 'c d', { e: 1.5, f: [] }], g: {} },
    ],
    [
      'values that are not strings',
      'a: 0x1F\nb: -1\nc: True\nd: null\ne: .5\nf: no\n',
      { a: 31, b: -1, c: true, d: null, e: 0.5, f: 'no' },
    ],
    ['a backslash before an empty line', 'a: null\\\n\nb: x # \\\n\n', { a: 'null\\', b: 'x' }],
    ['huge numbers in strings', 'a: "1e999"\nb: x1e999\nc: 1e999x\n', { a: '1e999', b: 'x1e999', c: '1e999x' }],
    ['addresses and paths', 'a: 10.0.0.1:80\nb: /x y/z\nc: a#b:c\n', { a: '10.0.0.1:80', b: '/x y/z', c: 'a#b:c' }],
  ])('parses %s', (_, text, value) => {
    expect(readSimpleDocument(text)?.value).toStrictEqual(value);
    expect(agrees(text)).toBe(true);
  });

  it.each([
    ['a value that continues on the next line', 'a: b\n  c\n'],
    ['a quoted string that continues on the next line', 'a: "b\n  c"\n'],
    ['a flow list that continues on the next line', 'a: [b,\n  c]\n'],
    ['a block scalar', 'a: |\n  b\n'],
    ['an escape sequence', 'a: "\\n"\n'],
    ['a quote in quotes', "a: 'it''s'\n"],
    ['an alias', 'a: &b c\nd: *b\n'],
    ['a merge key', 'a:\n  <<: {b: c}\n'],
    ['a duplicate key', 'a: 1\na: 2\n'],
    ['a duplicate key in a flow map', 'a: {b: 1, b: 2}\n'],
    ['a key that every object has, such as constructor', '__proto__: 1\n'],
    ['a key that is not a string', 'true: 1\n'],
    ['a nested list', 'a:\n- - b\n'],
    ['a key without a value', 'a:\nb: 1\n'],
    ['a map on the line of a map', 'a: b: c\n'],
    ['a line with an inconsistent indentation', 'a:\n    b: 1\n  c: 2\n'],
    ['a misaligned line within an item', 'a:\n- b: 1\n   c: 2\n'],
    ['letters beyond ASCII', 'a: é\n'],
    ['a tab', 'a:\tb\n'],
    ['a list of objects, whose positions are requested', 'kind: List\nitems:\n- a: 1\n'],
    ['a number that is too large', 'a: 1e999\n'],
    ['a hexadecimal number that is too large', `a: 0x${'f'.repeat(300)}\n`],
    ['a number that is too large in a flow list', 'a: [1e999]\n'],
    ['a list', '- a\n'],
    ['a scalar', 'a\n'],
    ['an empty text', '# nothing\n'],
    ['two documents', 'a: 1\n---\nb: 1\n'],
    ['deep nesting', `${Array.from({ length: 60 }, (_, i) => `${' '.repeat(i)}a:\n`).join('')}${' '.repeat(60)}b: 1\n`],
  ])('leaves to the other parsers: %s', (_, text) => {
    expect(readSimpleDocument(text)).toBeUndefined();
  });
});
