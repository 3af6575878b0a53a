import { describe, expect, it } from 'vitest';
import { re2Expression, re2Mistake } from './re2.ts';

describe('a regular expression for Envoy', () => {
  it.each([
    '.*',
    '^/v[12]/(?P<id>\\d+)$',
    '(?i)abc',
    '(?i:abc)d',
    '[[:alpha:]]+',
    'a{1,1000}',
    '\\Qa.b(\\E',
    '\\pN\\z',
    '\\(?=x',
    '/\\x{2F}\\x{ff}',
    '\\\\x{100}',
    '(?P<a>x)(?P<a>y)',
    'a{10000000000}',
    '\\C',
    '[(?P<a>]',
  ])('may be %s', (regex) => {
    expect(re2Mistake(regex)).toBeUndefined();
  });

  it.each([
    ['', 'must not be empty'],
    ['a'.repeat(1025), 'at most 1024 characters'],
    ['(?=a)b', 'lookahead'],
    ['(?<!a)b', 'lookbehind'],
    ['(a)\\1', 'back references'],
    ['a{1001}', '{1001} repeats more than 1000 times'],
    ['a{2,1}', 'invalid repeat count: {2,1}'],
    ['(a', 'RE2 expression'],
    ['*a', 'RE2 expression'],
    ['[^\\x{10FFFF}]', '\\x{10FFFF} is no byte'],
    ['\\477', 'no byte'],
    ['[ü-', 'missing closing ]: [ü-'],
    ['\\p{Garay}', 'no class \\p{Garay}'],
    ['(a{500}){3}', '{3} repeats more than 1000'],
    ['[a-z]{1000}.{1000}'.repeat(20), 'smaller expression'],
  ])('must not be %j', (regex, fragment) => {
    expect(re2Mistake(regex)).toContain(fragment);
  });
});

describe('an expression matches as Envoy matches', () => {
  it.each([
    ['/items/[0-9]+', '/items/12', true],
    ['/items', '/items/12', false],
    ['a|ab', 'ab', true],
    ['(?i)[[:alpha:]]+', 'aBc', true],
    ['(?-i)A', 'a', false],
    ['\\Qa.b\\E', 'a.b', true],
    ['\\Qa.b\\E', 'axb', false],
    ['.', 'ü', false],
    ['..', 'ü', true],
    ['\\C\\C', 'ü', true],
    ['.*', 'a\nb', false],
    ['(?s).*', 'a\nb', true],
    ['\\p{Greek}', 'λ', false],
    ['λ+', 'λ', true],
    ['a{10000000000}', 'a{10000000000}', true],
    ['(?P<n>a)(?P<n>b)', 'ab', true],
    ['[(?P<n>]', 'P', true],
  ])('%j of %j: %s', (regex, text, isMatch) => {
    expect(re2Expression(regex).matches(text)).toBe(isMatch);
  });

  it('is found anywhere in a text', () => {
    expect(re2Expression('1\\.2[0-9]').isFoundIn('istio 1.29.0')).toBe(true);
    expect(re2Expression('^1\\.2').isFoundIn('istio 1.29.0')).toBe(false);
  });

  it('of a mistake there is none', () => {
    expect(() => re2Expression('(a')).toThrow('"(a" is no RE2 expression: missing closing )');
  });
});
