import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { explainYamlDocument, parseYamlDocument } from './yaml-document.ts';
import { parsePlainDocument } from './yaml-fast.ts';

/** Texts that resemble other types, and characters with a special meaning in YAML. */
const scalarText = fc.oneof(
  fc.constantFrom(
    ...['yes', 'no', 'on', 'off', 'y', 'true', 'True', 'TRUE', 'tRue', 'null', 'Null', '~', '', '-', '.', '...', '---'],
    ...['1', '-1', '+1', '01', '0o17', '0x1F', '0b1', '1_000', '1.5', '1.', '.5', '1e3', '1e999', '-0', '12:30:45'],
    ...[
      '.inf',
      '-.Inf',
      '.nan',
      '=',
      '<<',
      '*',
      '*.example.com',
      '&a',
      '!x',
      '%x',
      '@x',
      '`x',
      '|',
      '>',
      '?',
      ':',
      '#',
    ],
    ...[
      'a: b',
      'a:b',
      'a #b',
      'a#b',
      '10.0.0.1',
      '10.0.0.0/8',
      '2024-01-01',
      '2024-01-01T00:00:00Z',
      '::1',
      '[::1]:80',
    ],
    ...[
      '9007199254740993',
      '0.1',
      'a\nb',
      'a\n\nb\n',
      ' a',
      'a ',
      '\ta',
      'é',
      '😀',
      '\u0007',
      '\u2028',
      '\\d+',
      "it's",
      '"',
    ],
  ),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: fc.constantFrom(...'ab:-#{}[],&*!|>\'"%@` \n\t?0.'), maxLength: 10 }),
);

const scalar = fc.oneof(scalarText, fc.boolean(), fc.integer(), fc.double(), fc.constant(null));

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(scalarText, tie('value'), { maxKeys: 4 }),
  ),
}));

const style = fc.record({
  collectionStyle: fc.constantFrom('any', 'flow', 'block'),
  defaultStringType: fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL', 'BLOCK_FOLDED'),
  defaultKeyType: fc.constantFrom(null, 'PLAIN', 'QUOTE_DOUBLE'),
  indent: fc.constantFrom(2, 4),
  indentSeq: fc.boolean(),
  lineWidth: fc.constantFrom(0, 20, 80),
  version: fc.constant('1.2'),
} as const);

/** Handwritten forms that no program generates. */
const handwritten = fc
  .array(
    fc.constantFrom(
      ...['a: 1\n', 'b:\n', '  c: x\n', '  - d\n', '- e\n', '  f: {g: 1, h: [2, 3]}\n', 'i: |\n', '    text\n', '\n'],
      ...[
        '# comment\n',
        'j: "quo\n',
        '  ted"\n',
        'k: >-\n',
        'l: plain\n',
        '  more\n',
        '---\n',
        '...\n',
        '? m\n',
        ': n\n',
      ],
      ...[
        '<<: {x: 1}\n',
        'o: &o 1\n',
        'p: *o\n',
        'q: !!str 1\n',
        '\tr: 1\n',
        's:\t1\n',
        'a: 2\n',
        '%YAML 1.2\n',
        'null: 1\n',
      ],
      ...[
        '1: one\n',
        'true: t\n',
        't: [1,\n',
        '2]\n',
        'u: {v: 1,\n',
        ' w}\n',
        '  x\r\n',
        'y: - z\n',
        '- - a\n',
        '-\n',
        '{\n',
        '}\n',
      ],
    ),
    { maxLength: 8 },
  )
  .map((lines) => lines.join(''));

const writtenDocument = fc
  .record({
    value: fc.dictionary(scalarText, value, { minKeys: 1, maxKeys: 5 }),
    style,
    head: fc.constantFrom('', '---\n', '# licence\n\n', '--- # x\n', '\n'),
  })
  .map(({ value: content, style: quoteStyle, head }) => head + stringify(content, quoteStyle));

/** Documents with one character added, removed or replaced. */
const damaged = fc
  .record({
    text: writtenDocument,
    at: fc.nat(),
    with: fc.constantFrom('', ' ', '\n', ':', '"', "'", '-', '[', '}', '#', '\t', 'x'),
  })
  .map(({ text, at, with: replacement }) => {
    const position = text.length === 0 ? 0 : at % text.length;
    return text.slice(0, position) + replacement + text.slice(position + 1);
  });

function holdsAgainstTheOther(text: string): void {
  const plain = parsePlainDocument(text);
  if (plain === undefined) return;
  const explained = explainYamlDocument({ text, line: 1 });
  expect(explained.errors, text).toEqual([]);
  expect(plain.value, text).toEqual(explained.value);
  expect(parseYamlDocument({ text, line: 7 }).positionOf('').line, text).toBe(explained.positionOf('').line + 6);
}

/** Returns the paths of all fields that a path can express, and of one missing field in each object. */
function pathsOf(content: unknown, path = ''): string[] {
  if (typeof content !== 'object' || content === null) return [path];
  const nestedPaths = Object.entries(content).flatMap(([key, member]) => {
    const step = Array.isArray(content) ? `[${key}]` : `[${JSON.stringify(key)}]`;
    return /["\\]/.test(key) ? [] : pathsOf(member, path + step);
  });
  return [path, `${path}["not there"]`, ...nestedPaths];
}

describe('the fast YAML parser', () => {
  it('parses plain documents', () => {
    const text = `# a route
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, labels: {app: web}}
spec:
  hosts: ["*.example.com"]
  http:
  - timeout: 1.5s
    match: [{uri: {regex: '\\d+'}}]
`;
    expect(parsePlainDocument(text)?.value).toEqual(explainYamlDocument({ text, line: 1 }).value);
  });

  it.each([
    ['an anchor', 'a: &x 1'],
    ['an alias', 'a: &x 1\nb: *x'],
    ['a tag', 'a: !!str 1'],
    ['a merge key', 'a: {<<: {b: 1}}'],
    ['a directive', '%YAML 1.1\n---\na: yes'],
    ['an empty key', 'null: 1'],
    ['a key that is a list', '? [a]\n: 1'],
    ['a key that every object has, such as constructor', '__proto__: {a: 1}'],
    ['a duplicate key', 'a: 1\na: 2'],
    ['two documents', 'a: 1\n---\nb: 2'],
    ['an empty text', '# nothing\n'],
    ['a scalar', 'a'],
    ['a list', '- a'],
    ['tabs', 'a:\tb'],
    ['a document end', 'a: 1\n...\n'],
    ['a syntax error', 'a: ['],
    ['a key after an item', 'a:\n- {}b: 1\n'],
    ['a number that is too large', 'a: 1e999'],
    ['an empty line after an escaped line break', 'a: "x\\\n \n  y"\n'],
  ])('leaves to the full parser: %s', (_, text) => {
    expect(parsePlainDocument(text)).toBeUndefined();
  });

  it('parses yes and no as strings, as in YAML 1.2', () => {
    expect(parsePlainDocument('a: [yes, no, on, off, True, ~]')?.value).toEqual({
      a: ['yes', 'no', 'on', 'off', true, null],
    });
  });

  it('returns the positions of list items', () => {
    const text =
      'kind: List\nother: [{a: 1}]\nitems:\n- a: 1\n  items: [{x: 1}]\n- {b: 2}\n-\n  c: 3\n- text\nlast: {a: 1}\n';
    const explained = explainYamlDocument({ text, line: 5 });
    const document = parseYamlDocument({ text, line: 5 });
    expect(parsePlainDocument(text)?.value).toBeDefined();
    for (const path of [
      '',
      'items[0]',
      'items[1]',
      'items[2]',
      'items[3]',
      'items[0].items[0].x',
      'items[9]',
      'kind',
    ]) {
      expect(document.positionOf(path), path).toEqual(explained.positionOf(path));
    }
  });

  it('returns the same field positions as the full parser', () => {
    const positions = (text: string): void => {
      const plain = parsePlainDocument(text);
      if (plain === undefined) return;
      const [document, explained] = [parseYamlDocument({ text, line: 3 }), explainYamlDocument({ text, line: 3 })];
      for (const path of pathsOf(plain.value))
        expect(document.positionOf(path), `${path} of ${text}`).toEqual(explained.positionOf(path));
    };
    fc.assert(fc.property(fc.oneof(writtenDocument, damaged, handwritten), positions), { numRuns: 500 });
  });

  it.each([
    ['generated documents', writtenDocument],
    ['damaged documents', damaged],
    ['handwritten documents', handwritten],
  ])('returns the same result as the full parser for %s', (_, texts) => {
    fc.assert(fc.property(texts, holdsAgainstTheOther), { numRuns: 1_000 });
  });

  it('accepts most handwritten documents of any style', () => {
    const scalars = fc.constantFrom('web', '*.example.com', '10.0.0.1', '1.5s', 'a b', "it's", 8080, true, 0.5);
    const names = fc.constantFrom('name', 'app.kubernetes.io/name', 'hosts', '8080', 'x-user');
    const plain = fc.dictionary(
      names,
      fc.oneof(scalars, fc.array(scalars, { minLength: 1 }), fc.dictionary(names, scalars)),
      { minKeys: 1 },
    );
    fc.assert(
      fc.property(plain, style, (content, quoteStyle) => {
        expect(parsePlainDocument(stringify(content, quoteStyle))?.value).toEqual(content);
      }),
    );
  });
});
