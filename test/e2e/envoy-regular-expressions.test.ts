/** Validation and Envoy agree on regular expressions. */
import { beforeAll, describe, expect, it } from 'vitest';
import { re2Violation } from '../../src/model/fields/re2.ts';
import { type EnvoyValidation, httpListener, oneRoute, validateListeners } from '../harness/envoy-validation.ts';

const acceptedPatterns = [
  ...['.*', '^/v[12]/(?P<id>\\d+)$', '(?<id>a)(?<id>b)', '(?P<1d>a)', '(?i:abc)d', '(?U)a+', '(?-i)a', '(?:)*'],
  ...['[]a]', '[^]a]', '[a]]', '[a-z-9]', '[(?P<a>]', '[+--]', '[\\pL]', '[[:^alpha:]]', '[[=a=]]', '[:alpha:]'],
  ...['a{,5}', 'a{5', 'a{0,1000}', 'a{1000}b{1000}', 'a{00001}', 'a{10000000000}', '^*', '\\b+', '(|a)', '()'],
  ...['\\Qa.b(\\E', '\\Qabc', '\\Q\\\\E', '\\p{Greek}', '\\p{Kawi}', '\\P{^Lu}', '\\z', '\\C+', '\\0', '\\12', '\\377'],
  ...['\\x{ff}', '\\x{0000041}', '\\_', '\\/', 'ü{3}', '[日-本]', '[é-à]', '\\(?=x', '\\\\x{100}', '{', 'a\nb'],
  ...['\\w{1000}'.repeat(3), 'a{1000}'.repeat(32), '('.repeat(400) + ')'.repeat(400)],
];

const refusedPatterns = [
  ...['(?P<ü>a)', '(?P<a-b>a)', '(?P<a', '(?P=id)', '(?x)a b', '(?', '(?-)a', '(?i', '(?#c)a', '(?>a)'],
  ...[
    '[[:foo:]]',
    '[[:alpha:]',
    '[]',
    '[z-a]',
    '[a-\\d]',
    '[\\b]',
    '[\\C]',
    '[\\Q]\\E]',
    '[\\x{100}]',
    '[^\\x{10FFFF}]',
  ],
  ...['a{1001}', 'a{2,1}', 'a{1}{2}', 'a**', '*a', '{1}', '(a{500}){3}', '((a{10}){10}){11}', '\\E', 'a)'],
  ...[
    '\\p{greek}',
    '\\p{LC}',
    '\\p{Cn}',
    '\\p{Garay}',
    '\\p{Emoji}',
    '\\pQ',
    '\\Z',
    '\\G',
    '\\e',
    '\\cA',
    '\\8',
    '\\u0041',
  ],
  ...['(a)\\1', '\\k<a>', '\\477', '\\x1', '\\x{100}', '\\é', '\\y', 'a\\', '(?=a)b', '(?<!a)b', '(?(1)a)', '(?R)'],
  ...['a{1000}'.repeat(33), '.{1000}'.repeat(20), '[a-z]{0,1000}'.repeat(17)],
];

/** One Envoy validates all expressions: one Envoy for each took 14 s of processor time. */
const results = new Map<string, EnvoyValidation>();

beforeAll(async () => {
  const all = [...acceptedPatterns, ...refusedPatterns];
  for (const [index, result] of (await validateListeners(all.map(listenerOf))).entries()) {
    results.set(all[index]!, result);
  }
});

describe('a regular expression', () => {
  it.each(acceptedPatterns)('is accepted by Envoy if validation accepts it: %j', (regex) => {
    expect(re2Violation(regex)).toBeUndefined();
    expect(results.get(regex)).toEqual({ result: 'accepted' });
  });

  it.each(refusedPatterns)('is rejected by Envoy if validation rejects it: %j', (regex) => {
    expect(re2Violation(regex)?.code).toMatch(/^FIELD_(FORMAT_INVALID|TOO_LARGE)$/);
    expect(results.get(regex)).toMatchObject({ result: 'refused' });
  });
});

function listenerOf(regex: string): object {
  return httpListener(oneRoute({ match: { safe_regex: { regex } }, direct_response: { status: 200 } }));
}
