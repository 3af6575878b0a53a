import { describe, expect, it } from 'vitest';
import { celViolation } from './expression.ts';

/** Expressions that Envoy 1.40 accepts as the filter of an access log. */
const acceptedExpressions = [
  ...['response.code >= 400', 'foo == 1', 'true', '"x"', '1', 'has(request.foo)', 'has((a.b))', '"a" ? 1 : 2'],
  ...['size(request.path) > 3 && request.path.startsWith("/a")', "'a' in ['a']", '[1,2,] == [1]', '{1:2,} == {}'],
  ...[
    "request.headers['x'] == r'\\d'",
    '-1 == !true',
    'b"abc" == b\'x\'',
    '1u == 0x1F',
    '.5 > 1',
    '1.e3',
    '!-1',
    '--1 == 1',
  ],
  ...['true // c', 'matches(request.path, "a")', 'request.time.getFullYear("UTC") == 2020', 'type(1) == int'],
  ...['a ? b : c ? d : e', '(a) . b', '.a.b == 1', 'a[0][1].c', '1 in [1] && 2 in {2: 3}', '1 < 2 < 3', 'a.package'],
  ...[
    '"\\x41\\u0041\\U00000041\\101"',
    "'''a\nb''' == \"c\"",
    'request.path.matches("^a" + "[")',
    '-9223372036854775808',
  ],
  ...['18446744073709551615u', 'duration("1s") > duration("x")', 'contains(a, "b")', '_a == _', 'null == 1'],
];

const rejectedExpressions = [
  ...[
    '1 +',
    'in',
    'a.in',
    'for',
    'let',
    'a..b',
    '1..2',
    'a.1',
    '()',
    '(',
    '[1',
    '{1}',
    '{1:2',
    '||',
    'a &&',
    '"a" "b"',
  ],
  ...['foo.bar(1)', 'startsWith(1)', 'upperAscii(request.path)', '"a".lowerAscii() == "b"', 'size()', 'size(1,2,3)'],
  ...['request.path.startsWith("/a", 1)', 'x.getHours(1,2)', 'getHours(x)', 'math.abs(1)', 'string(1) == "1"', 'f(1,)'],
  ...['request.headers.exists(k, k == "a")', '[1,2].map(x, x)', 'a.all(x, true)', 'exists(1,2)', 'a.has(b)'],
  ...['has(request)', 'has(a["b"])', 'has()', 'has(a.b, c.d)', 'a{b:1}', 'a.b.C{d: 1}', 'a.?b', 'a[?0]', '[?a]'],
  ...[
    'request.matches("[")',
    'matches(request.path, "[")',
    'request.path.matches(r"[")',
    "'a\\qb'",
    '"\\400"',
    '"a\nb"',
  ],
  ...['0xG', '1a', 'a @ b', 'a & b', 'a = b', 'a; b', '#', '$x', 'é', 'rb"x" == b"x"', '9223372036854775808'],
  ...['18446744073709551616u', '0x8000000000000000', 'a ? b ? c : d : e ?'],
];

describe('the expression of an access log filter', () => {
  it.each(acceptedExpressions)('is valid if it is %s', (text) => {
    expect(celViolation(text)).toBeUndefined();
  });

  it.each(rejectedExpressions)('is invalid if it is %s, as in Envoy', (text) => {
    expect(celViolation(text)).toMatchObject({ code: 'FIELD_FORMAT_INVALID', expected: 'a CEL expression' });
  });

  it('is rejected with a reason', () => {
    const reasonFor = (text: string) => celViolation(text)!.message.replace(/^must be a CEL expression, got .*?: /, '');
    expect(celViolation('a.exists(x, x)')!.message).toBe(
      'must be a CEL expression, got "a.exists(x, x)": exists() is not supported by Envoy',
    );
    expect(reasonFor('foo(1)')).toBe('foo() with 1 arguments is not a function of Envoy');
    expect(reasonFor('1 +')).toBe('unexpected end');
    expect(reasonFor(`${'('.repeat(300)}1${')'.repeat(300)}`)).toContain('nested deeper than 200 levels');
  });
});
