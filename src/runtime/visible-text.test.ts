import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hostileCharacters } from '../../test/fixtures/hostile-text.ts';
import { visibleBytes } from './visible-bytes.ts';
import { visibleLine, visibleMetrics, visibleText } from './visible-text.ts';

const anyText = fc.string({
  unit: fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((c) => String.fromCharCode(c)),
    fc.string({ unit: 'binary', maxLength: 2 }),
  ),
});

describe('visibleText', () => {
  test.each([
    ['a color', 'a\u001b[31mb', 'a\\x1b[31mb'],
    ['a bell and a backspace', '\u0007\b', '\\x07\\x08'],
    ['a carriage return, which overwrites a line', 'a\rb', 'a\\rb'],
    ['delete and the one-byte CSI', '\u007f\u009b2J', '\\u007f\\u009b2J'],
    [
      'bidirectional controls',
      '\u202a\u202e\u2066\u2069\u200e\u200f\u061c',
      '\\u202a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061c',
    ],
    ['line and paragraph separators', '\u2028\u2029', '\\u2028\\u2029'],
    ['zero-width characters', 'a\u200bb\u200d\u2060\ufeff\u00ad', 'a\\u200bb\\u200d\\u2060\\ufeff\\u00ad'],
    ['a tag character', '\u{e0041}', '\\udb40\\udc41'],
    ['a filler that is displayed as empty space', '\u3164', '\\u3164'],
    ['a lone surrogate', 'a\ud800b', 'a\\ud800b'],
  ])('escapes %s', (_, text, visible) => {
    expect(visibleText(text)).toBe(visible);
  });

  test('keeps lines, tabs, and every visible character', () => {
    const text = 'one\n\ttwo: Grüße, 世界 😀 → … “x” שלום\n';
    expect(visibleText(text)).toBe(text);
  });

  test('returns no invisible character, and does not change its own output', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const visible = visibleText(text);
        expect(visible).not.toMatch(hostileCharacters);
        expect(visibleText(visible)).toBe(visible);
      }),
    );
  });

  test('keeps JSON valid with the same value', () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), fc.constantFrom(undefined, 2), (value, indent) => {
        const { __proto__: _, ...ownFields } = value;
        expect(JSON.parse(visibleText(JSON.stringify(ownFields, undefined, indent)))).toEqual(ownFields);
      }),
    );
  });
});

describe('visibleLine', () => {
  test('escapes line feeds and tabs', () => {
    expect(visibleLine('one\n\tforged: ok')).toBe('one\\n\\tforged: ok');
  });

  test.each([
    ['abcd', 4, 'abcd'],
    ['abcde', 4, 'abc…'],
    ['ab\u202ecd', 5, 'ab…'],
    ['ab\u202ecd', 10, 'ab\\u202ecd'],
    ['ab😀cd', 4, 'ab…'],
    ['\u001b'.repeat(1_000_000), 6, '\\x1b…'],
  ])('returns %j with at most %d characters as %j', (text, maxLength, line) => {
    expect(visibleLine(text, maxLength)).toBe(line);
  });
});

test('visibleMetrics doubles the backslash of an escape, as the format requires', () => {
  expect(visibleMetrics('m{reason="a\u202e\u001b"} 1\n')).toBe('m{reason="a\\\\u202e\\\\x1b"} 1\n');
});

describe('visibleBytes', () => {
  test('returns the same bytes if all characters are visible', () => {
    const lines = Buffer.from('GET /a 200\nGET /b 200\n');
    expect(visibleBytes(lines)).toBe(lines);
    expect(visibleBytes(Buffer.from('Grüße\n')).toString()).toBe('Grüße\n');
  });

  test('escapes invisible characters, and each byte beyond ASCII in a line that is not UTF-8', () => {
    expect(visibleBytes(Buffer.from('a\u001b[2J\u202e\n')).toString()).toBe('a\\x1b[2J\\u202e\n');
    const lines = Buffer.concat([
      Buffer.from('ü\n'),
      Buffer.from([0x61, 0x9b, 0x32, 0x4a, 0xff, 0x0a]),
      Buffer.from('é\u001b\n'),
    ]);
    expect(visibleBytes(lines).toString()).toBe('ü\na\\x9b2J\\xff\né\\x1b\n');
  });
});
