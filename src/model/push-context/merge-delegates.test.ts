import { describe, expect, it } from 'vitest';
import type { HttpMatchRequest, HttpRoute } from '../kinds/virtual-service/virtual-service.ts';
import { mergeDelegateRoutes } from './merge-delegates.ts';

const mergeMatches = (root: HttpMatchRequest, leaf: HttpMatchRequest): readonly HttpMatchRequest[] | undefined =>
  mergeDelegateRoutes({ match: [root] }, [{ match: [leaf] }])[0]?.route.match;

describe('the merged routes of a delegate', () => {
  it('inherit fields that the delegate does not set from the root, including newer fields', () => {
    const root = { match: [{}], delegate: { name: 'leaf' }, timeoutMs: 5, later: 'root' } as HttpRoute;
    const merge = (leaf: object): HttpRoute | undefined =>
      mergeDelegateRoutes(root, [{ match: [{}], ...leaf }])[0]?.route;
    expect(merge({})).toEqual({ match: [{}], timeoutMs: 5, later: 'root' });
    expect(merge({ timeoutMs: 7, later: 'leaf' })).toEqual({ match: [{}], timeoutMs: 7, later: 'leaf' });
  });

  it.each<[string, HttpMatchRequest, HttpMatchRequest, HttpMatchRequest | undefined]>([
    ['a longer prefix', { uri: { prefix: '/a' } }, { uri: { prefix: '/a/b' } }, { uri: { prefix: '/a/b' } }],
    ['a path under the prefix', { uri: { prefix: '/a' } }, { uri: { exact: '/a/b' } }, { uri: { exact: '/a/b' } }],
    ['a shorter prefix', { uri: { prefix: '/a/b' } }, { uri: { prefix: '/a' } }, undefined],
    ['another path', { uri: { exact: '/a' } }, { uri: { exact: '/b' } }, undefined],
    ['a regular expression under a prefix', { uri: { prefix: '/a' } }, { uri: { regex: '/a.*' } }, undefined],
    [
      'no path',
      { uri: { prefix: '/a' } },
      { method: { exact: 'GET' } },
      { uri: { prefix: '/a' }, method: { exact: 'GET' } },
    ],
    [
      'another header',
      { headers: { x: { exact: '1' } } },
      { headers: { y: { exact: '2' } } },
      { headers: { x: { exact: '1' }, y: { exact: '2' } } },
    ],
    ['a header with another value', { headers: { x: { exact: '1' } } }, { headers: { x: { exact: '2' } } }, undefined],
    [
      'a header that must be present in the root',
      { headers: { x: { present: true } } },
      { headers: { x: { exact: '2' } } },
      { headers: { x: { exact: '2' } } },
    ],
    ['another port', { port: 80 }, { port: 81 }, undefined],
    [
      'no header if the root excludes a value',
      { withoutHeaders: { x: { exact: '1' } } },
      { withoutHeaders: { x: { present: true } } },
      { withoutHeaders: { x: { present: true } } },
    ],
    [
      'a narrower exclusion than the root',
      { withoutHeaders: { x: { present: true }, y: { prefix: 'a' } } },
      { withoutHeaders: { x: { exact: '1' }, y: { prefix: 'ab' }, z: { exact: '2' } } },
      { withoutHeaders: { x: { present: true }, y: { prefix: 'a' }, z: { exact: '2' } } },
    ],
    [
      'another exclusion of a header',
      { withoutHeaders: { x: { exact: '1' } } },
      { withoutHeaders: { x: { exact: '2' } } },
      undefined,
    ],
    ['an empty list of gateways', { gateways: ['a/b'] }, { gateways: [] }, { gateways: ['a/b'] }],
    ['another case sensitivity', { ignoreUriCase: true }, {}, undefined],
    [
      'other source labels',
      { sourceLabels: { a: '1' } },
      { sourceLabels: { b: '2' } },
      { sourceLabels: { a: '1', b: '2' } },
    ],
    ['conflicting source labels', { sourceLabels: { a: '1' } }, { sourceLabels: { a: '2' } }, undefined],
    ['another source namespace', { sourceNamespace: 'a' }, { sourceNamespace: 'b' }, undefined],
    ['a gateway of the root', { gateways: ['mesh', 'a/b'] }, { gateways: ['mesh'] }, { gateways: ['mesh'] }],
    ['a gateway that the root lacks', { gateways: ['mesh'] }, { gateways: ['a/b'] }, undefined],
  ])('combine the match of the root with %s', (_, root, leaf, expected) => {
    expect(mergeMatches(root, leaf)).toEqual(expected && [expected]);
  });

  it('combine every match with every compatible match of the root', () => {
    const root: HttpRoute = {
      match: [
        { name: 'r1', headers: { x: { exact: '1' } } },
        { name: 'r2', uri: { prefix: '/a' } },
      ],
    };
    const delegate: HttpRoute = { match: [{ name: 'd', uri: { prefix: '/b' } }] };
    expect(mergeDelegateRoutes(root, [delegate])[0]?.route.match).toEqual([
      { name: 'r1-d', headers: { x: { exact: '1' } }, uri: { prefix: '/b' } },
    ]);
  });

  it('are dropped if one of their matches is incompatible with all matches of the root', () => {
    const root: HttpRoute = { match: [{ uri: { prefix: '/a' } }] };
    expect(mergeDelegateRoutes(root, [{ match: [{ uri: { exact: '/a/1' } }, { uri: { exact: '/b' } }] }])).toEqual([]);
  });

  it('keep their own fields and inherit the others from the root', () => {
    const root: HttpRoute = {
      name: 'root',
      timeoutMs: 1,
      retries: { attempts: 2 },
      mirror: { host: 'm' },
      headers: {},
    };
    const delegate: HttpRoute = {
      name: 'leaf',
      timeoutMs: 5,
      mirrors: [{ destination: { host: 'n' } }],
      route: [{ destination: { host: 'a' } }],
    };
    expect(mergeDelegateRoutes(root, [delegate])[0]?.route).toEqual({
      name: 'root-leaf',
      match: [],
      timeoutMs: 5,
      retries: { attempts: 2 },
      headers: {},
      mirrors: [{ destination: { host: 'n' } }],
      route: [{ destination: { host: 'a' } }],
    });
  });

  it('keep their index even if earlier routes are dropped', () => {
    const root: HttpRoute = { match: [{ uri: { prefix: '/a' } }] };
    const mergedRoutes = mergeDelegateRoutes(root, [{ match: [{ uri: { exact: '/b' } }] }, {}]);
    expect(mergedRoutes.map(({ index }) => index)).toEqual([1]);
  });
});
