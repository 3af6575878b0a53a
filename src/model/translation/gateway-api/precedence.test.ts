import { describe, expect, it } from 'vitest';
import type { HttpRouteMatch } from '../../kinds/gateway-api/http-route.ts';
import { byPrecedence, type RankedMatch } from './precedence.ts';

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

function placed(written: Written): RankedMatch {
  const { exact, prefix = '/', regex, method, headers = 0, params = 0 } = written;
  const values = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ type: 'Exact' as const, name: `n${index}`, value: 'v' }));
  const path: HttpRouteMatch['path'] =
    exact !== undefined
      ? { type: 'Exact', value: exact }
      : regex !== undefined
        ? { type: 'RegularExpression', value: regex }
        : { type: 'PathPrefix', value: prefix };
  const match = { path, headers: values(headers), queryParams: values(params), ...(method && { method }) };
  const { age = 0, name = 'shop/a', rule = 0, index = 0 } = written;
  return { match, age, routeName: name, rule, index };
}

describe('of two matches for one request', () => {
  it.each<[string, Written, Written]>([
    ['an exact path is before a longer prefix', { exact: '/a' }, { prefix: '/a/b/c', method: 'GET', headers: 3 }],
    ['the longer prefix is before the shorter', { prefix: '/a/b' }, { prefix: '/a', method: 'GET', headers: 5 }],
    ['slashes at its end make no prefix longer', { prefix: '/ab', method: 'GET' }, { prefix: '/ab///' }],
    ['a prefix is before an expression', { prefix: '/a' }, { regex: '/a/[0-9]+/.*', headers: 1 }],
    ['a method alone is before an expression', { prefix: '/', method: 'GET' }, { regex: '/a/b', headers: 9 }],
    ['any path is before an expression', { prefix: '/' }, { regex: '/a', method: 'GET', params: 9 }],
    ['of two expressions the longer is first', { regex: '/a/b' }, { regex: '/a', method: 'GET' }],
    ['one with a method is before one with headers', { prefix: '/a', method: 'GET' }, { prefix: '/a', headers: 4 }],
    ['more headers are before fewer', { headers: 2 }, { headers: 1, params: 5 }],
    ['more query parameters are before fewer', { headers: 1, params: 2 }, { headers: 1, params: 1, age: -1 }],
    ['the older route is before the younger', { age: 1, name: 'z/z', rule: 7 }, { age: 2, name: 'a/a' }],
    ['of one age the name decides, its namespace first', { name: 'a/z', rule: 3 }, { name: 'b/a' }],
    ['in a route the earlier rule is first', { rule: 1, index: 9 }, { rule: 2 }],
    ['in a rule the earlier match is first', { index: 1 }, { index: 2 }],
  ])('%s', (_, first, second) => {
    expect(byPrecedence(placed(first), placed(second))).toBeLessThan(0);
    expect(byPrecedence(placed(second), placed(first))).toBeGreaterThan(0);
  });
});
