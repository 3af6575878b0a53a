import { expect, it } from 'vitest';
import { codedError } from '../../../../test/fixtures/coded-error.ts';
import { virtualServiceWarnings } from './virtual-service.warnings.ts';

const route = [{ destination: { host: 'a.b' } }];
const warnings = (spec: object): string[] => virtualServiceWarnings({ hosts: ['a.b'], ...spec }).map(codedError);

it('a VirtualService has a warning for unreachable routes after one that matches everything', () => {
  const catchAllRoutes = [{ match: [{ uri: { prefix: '/' }, name: 'all' }], route }, { route }];
  expect(warnings({ http: catchAllRoutes })).toEqual(['http[1]: MATCH_SHADOWED beside http[0]']);
  expect(
    warnings({ http: [{ match: [{ uri: { prefix: '/' }, method: { exact: 'GET' } }], route }, { route }] }),
  ).toEqual([]);
  expect(warnings({ tcp: [{ match: [{}], route }, { route }] })).toEqual(['tcp[1]: MATCH_SHADOWED beside tcp[0]']);
  expect(warnings({ tcp: [{ match: [{ port: 1 }], route }, { route }] })).toEqual([]);
});

it('a VirtualService has a warning for duplicate matches of requests and connections', () => {
  const tls = [
    { match: [{ sniHosts: ['a.b'] }], route },
    { match: [{ sniHosts: ['a.b'] }], route },
  ];
  expect(warnings({ tls })).toEqual(['tls[1].match[0]: MATCH_SHADOWED beside tls[0]']);
  const tcp = [{ match: [{ port: 1 }, { port: 1 }], route }];
  expect(warnings({ tcp })).toEqual(['tcp[0].match[1]: MATCH_SHADOWED beside tcp[0]']);
});

it('a VirtualService has a warning for faults without a percentage, because these apply to no request', () => {
  const fault = { delay: { fixedDelay: '1s' }, abort: { httpStatus: 503, percentage: { value: 100 } } };
  expect(warnings({ http: [{ route }, { fault, match: [{ port: 1 }] }] })).toContainEqual(
    'http[1].fault.delay.percentage: FIELD_WITHOUT_EFFECT',
  );
  expect(warnings({ http: [{ fault: { abort: fault.abort }, route }] })).toEqual([]);
});

it('a VirtualService has a warning for claims, because these are available only at gateways', () => {
  const http = [{ match: [{ headers: { '@request.auth.claims.group': { exact: 'x' } } }], route }];
  expect(warnings({ http, gateways: ['front', 'mesh'] })).toEqual([
    'http[0].match[0].headers["@request.auth.claims.group"]: FIELD_WITHOUT_EFFECT',
  ]);
  expect(warnings({ http, gateways: ['front'] })).toEqual([]);
});

it.each([
  ['/b/\\1', undefined],
  ['/b/\\0\\\\', undefined],
  ['/b/\\3', '"\\\\3"'],
  ['/b/\\a', '"\\\\a"'],
  ['/b/\\', '"\\\\"'],
])('a VirtualService has a warning for a uriRegexRewrite only if it has no effect: %s', (rewrite, gotText) => {
  const http = [{ rewrite: { uriRegexRewrite: { match: '^/a/([a-z]+)$', rewrite } }, route }];
  const path = 'http[0].rewrite.uriRegexRewrite.rewrite';
  expect(warnings({ http })).toEqual(gotText === undefined ? [] : [`${path}: FIELD_WITHOUT_EFFECT got ${gotText}`]);
});

it.each([
  ['uri', { prefix: '/api/*' }, 'uri.prefix'],
  ['uri', { exact: '/a/*/b' }, 'uri.exact'],
  ['authority', { exact: '*.shop.test' }, 'authority.exact'],
  ['method', { prefix: '*' }, 'method.prefix'],
  ['uri', { regex: '/api/.*' }, undefined],
  ['uri', { prefix: '/api/' }, undefined],
  ['headers', { accept: { exact: '*/*' } }, undefined],
])(
  'a VirtualService has a warning for a * in a match only if a path, authority or method is compared with it literally: %s %o',
  (field, match, reportedPath) => {
    const foundWarnings = warnings({ http: [{ match: [{ [field]: match }], route }] });
    expect(foundWarnings).toEqual(
      reportedPath === undefined
        ? []
        : [expect.stringMatching(`^http\\[0\\]\\.match\\[0\\]\\.${reportedPath}: FIELD_DOUBTFUL`)],
    );
  },
);
