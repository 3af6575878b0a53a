import { describe, expect, it } from 'vitest';
import { re2Mistake } from './re2.ts';

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
  ])('may be %s', (regex) => {
    expect(re2Mistake(regex)).toBeUndefined();
  });

  it.each([
    ['', 'must not be empty'],
    ['a'.repeat(1025), 'at most 1024 characters'],
    ['(?=a)b', 'lookahead'],
    ['(?<!a)b', 'lookbehind'],
    ['(a)\\1', 'back references'],
    ['a{1001}', 'at most 1000'],
    ['(a', 'RE2 expression'],
    ['*a', 'RE2 expression'],
    ['[^\\x{10FFFF}]', 'expression of bytes'],
  ])('must not be %j', (regex, fragment) => {
    expect(re2Mistake(regex)).toContain(fragment);
  });
});
