import { describe, expect, it } from 'vitest';
import { codedViolation } from '../../../test/fixtures/coded-error.ts';
import { re2Expression, re2Violation } from './re2.ts';

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
  ])('can be %s', (regex) => {
    expect(re2Violation(regex)).toBeUndefined();
  });

  it.each([
    ['(?=a)b', 'lookahead'],
    ['(?<!a)b', 'lookbehind'],
    ['(a)\\1', 'backreferences'],
    ['a{1001}', '{1001} repeats more than 1,000 times'],
    ['a{2,1}', 'invalid repeat count: {2,1}'],
    ['(a', 'RE2 expression'],
    ['*a', 'RE2 expression'],
    ['[^\\x{10FFFF}]', '\\x{10FFFF} is not a byte'],
    ['\\477', 'not a byte'],
    ['[ü-', 'missing closing ]: [ü-'],
    ['\\p{Garay}', 'no character class \\p{Garay}'],
    ['(a{500}){3}', '{3} repeats more than 1,000'],
  ])('cannot be %j', (regex, fragment) => {
    const { code, expected, message } = re2Violation(regex)!;
    expect([code, expected]).toEqual(['FIELD_FORMAT_INVALID', 'an RE2 expression']);
    expect(message).toContain(fragment);
  });

  it.each([
    ['', 'FIELD_EMPTY'],
    ['a'.repeat(1025), 'FIELD_TOO_LARGE (at most 1024 characters) got 1025'],
    ['[a-z]{1000}.{1000}'.repeat(20), 'FIELD_TOO_LARGE'],
  ])('cannot be empty or too large', (regex, coded) => {
    expect(codedViolation(re2Violation(regex)!)).toContain(coded);
  });
});

describe('a compiled regular expression', () => {
  it.each([
    ['/items/[0-9]+', '/items/12', 'matches'],
    ['/items', '/items/12', 'does not match'],
    ['a|ab', 'ab', 'matches'],
    ['(?i)[[:alpha:]]+', 'aBc', 'matches'],
    ['(?-i)A', 'a', 'does not match'],
    ['\\Qa.b\\E', 'a.b', 'matches'],
    ['\\Qa.b\\E', 'axb', 'does not match'],
    ['.', 'ü', 'does not match'],
    ['..', 'ü', 'matches'],
    ['\\C\\C', 'ü', 'matches'],
    ['.*', 'a\nb', 'does not match'],
    ['(?s).*', 'a\nb', 'matches'],
    ['\\p{Greek}', 'λ', 'does not match'],
    ['λ+', 'λ', 'matches'],
    ['a{10000000000}', 'a{10000000000}', 'matches'],
    ['(?P<n>a)(?P<n>b)', 'ab', 'matches'],
    ['[(?P<n>]', 'P', 'matches'],
  ])('has the same result as in Envoy: $0 $2 $1', (regex, text, verb) => {
    expect(re2Expression(regex).matches(text)).toBe(verb === 'matches');
  });

  it('matches anywhere in a text', () => {
    expect(re2Expression('1\\.2[0-9]').hasMatchIn('istio 1.29.0')).toBe(true);
    expect(re2Expression('^1\\.2').hasMatchIn('istio 1.29.0')).toBe(false);
  });

  it('is not created from an invalid expression', () => {
    expect(() => re2Expression('(a')).toThrow('"(a" is not an RE2 expression: missing closing ): (a');
  });
});
