import { expect, it } from 'vitest';
import { shadowedMatches } from './shadowed-matches.ts';
import type { HttpMatchRequest } from './virtual-service.ts';

const route = [{ destination: { host: 'a.test' } }];

function isShadowed(earlierMatch: HttpMatchRequest, laterMatch: HttpMatchRequest): boolean {
  const http = [earlierMatch, laterMatch].map((match) => ({ match: [match], route }));
  const shadowed = shadowedMatches({ hosts: ['a.test'], http });
  for (const { path, shadowingPath } of shadowed)
    expect([path, shadowingPath]).toEqual(['http[1].match[0]', 'http[0]']);
  return shadowed.length === 1;
}

const prefix = (text: string) => ({ uri: { prefix: text } });
const get = { method: { exact: 'GET' } };

it.each<[HttpMatchRequest, HttpMatchRequest]>([
  [prefix('/a'), prefix('/a/late')],
  [prefix('/a'), { uri: { exact: '/a/late' } }],
  [prefix('/a'), { ...prefix('/a/late'), ...get }],
  [
    { ...prefix('/a'), headers: { x: { exact: '1' } } },
    { ...prefix('/a/b'), headers: { y: { exact: '2' }, x: { exact: '1' } } },
  ],
  [{ ...prefix('/A'), ignoreUriCase: true }, prefix('/a/late')],
  [
    { ...prefix('/'), ...get },
    { uri: { regex: '/a.*' }, ...get },
  ],
  [get, { ...prefix('/a'), ...get }],
  [
    { ...prefix('/a'), name: 'first' },
    { ...prefix('/ab'), name: 'second', statPrefix: 'x' },
  ],
])('the match %j of an earlier route shadows %j', (earlierMatch, laterMatch) => {
  expect(isShadowed(earlierMatch, laterMatch)).toBe(true);
});

it.each<[HttpMatchRequest, HttpMatchRequest]>([
  [prefix('/a/late'), prefix('/a')],
  [{ uri: { exact: '/a' } }, prefix('/a/late')],
  [{ ...prefix('/a'), ...get }, prefix('/a/late')],
  [
    { ...prefix('/a'), ...get },
    { ...prefix('/a/late'), method: { exact: 'POST' } },
  ],
  [{ ...prefix('/a'), withoutHeaders: { x: { present: true } } }, prefix('/a/late')],
  [prefix('/a'), { ...prefix('/a/late'), ignoreUriCase: true }],
  [prefix('/A'), prefix('/a/late')],
  [prefix('/a'), { uri: { regex: '/a/.*' } }],
  [{ ...prefix('/a'), gateways: ['shop/g'] }, prefix('/a/late')],
  [
    { ...prefix('/a'), port: 80 },
    { ...prefix('/a/late'), port: 81 },
  ],
])('the match %j of an earlier route does not shadow %j', (earlierMatch, laterMatch) => {
  expect(isShadowed(earlierMatch, laterMatch)).toBe(false);
});

it('matches of the same route do not shadow each other', () => {
  const http = [{ match: [prefix('/a'), prefix('/a/b')], route }];
  expect(shadowedMatches({ hosts: ['a.test'], http })).toEqual([]);
});
