import { describe, expect, it } from 'vitest';
import type { HttpRouteMatch } from '../../kinds/gateway-api/http-route.ts';
import { comparePrecedence, type RankedMatch } from './precedence.ts';

interface Written {
  readonly exact?: string;
  readonly prefix?: string;
  readonly regex?: string;
  readonly method?: string;
  readonly headers?: number;
  readonly params?: number;
  readonly age?: number;
  readonly name?: string;
  readonly rule?: number;
  readonly index?: number;
}

function rankedMatch(writtenMatch: Written): RankedMatch {
  const { exact, prefix = '/', regex, method, headers = 0, params = 0 } = writtenMatch;
  const values = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ type: 'Exact' as const, name: `n${index}`, value: 'v' }));
  const path: HttpRouteMatch['path'] =
    exact !== undefined
      ? { type: 'Exact', value: exact }
      : regex !== undefined
        ? { type: 'RegularExpression', value: regex }
        : { type: 'PathPrefix', value: prefix };
  const match = { path, headers: values(headers), queryParams: values(params), ...(method && { method }) };
  const { age = 0, name = 'shop/a', rule = 0, index = 0 } = writtenMatch;
  return { match, age, routeName: name, rule, index };
}

describe('matches of the same request', () => {
  it.each<[string, Written, Written]>([
    ['an exact path precedes a longer prefix', { exact: '/a' }, { prefix: '/a/b/c', method: 'GET', headers: 3 }],
    ['the longer prefix precedes the shorter one', { prefix: '/a/b' }, { prefix: '/a', method: 'GET', headers: 5 }],
    ['trailing slashes make no prefix longer', { prefix: '/ab', method: 'GET' }, { prefix: '/ab///' }],
    ['a prefix precedes a regular expression', { prefix: '/a' }, { regex: '/a/[0-9]+/.*', headers: 1 }],
    [
      'a method without a path precedes a regular expression',
      { prefix: '/', method: 'GET' },
      { regex: '/a/b', headers: 9 },
    ],
    ['any path precedes a regular expression', { prefix: '/' }, { regex: '/a', method: 'GET', params: 9 }],
    ['the longer of two regular expressions comes first', { regex: '/a/b' }, { regex: '/a', method: 'GET' }],
    ['a match with a method precedes one with headers', { prefix: '/a', method: 'GET' }, { prefix: '/a', headers: 4 }],
    ['more headers precede fewer ones', { headers: 2 }, { headers: 1, params: 5 }],
    ['more query parameters precede fewer ones', { headers: 1, params: 2 }, { headers: 1, params: 1, age: -1 }],
    ['the older route precedes the younger one', { age: 1, name: 'z/z', rule: 7 }, { age: 2, name: 'a/a' }],
    ['names decide at equal age, the namespace first', { name: 'a/z', rule: 3 }, { name: 'b/a' }],
    ['the earlier rule of a route comes first', { rule: 1, index: 9 }, { rule: 2 }],
    ['the earlier match of a rule comes first', { index: 1 }, { index: 2 }],
  ])('%s', (_, first, second) => {
    expect(comparePrecedence(rankedMatch(first), rankedMatch(second))).toBeLessThan(0);
    expect(comparePrecedence(rankedMatch(second), rankedMatch(first))).toBeGreaterThan(0);
  });
});
