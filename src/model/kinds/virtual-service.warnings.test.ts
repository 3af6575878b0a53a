import { expect, it } from 'vitest';
import { virtualServiceWarnings } from './virtual-service.warnings.ts';

const route = [{ destination: { host: 'a.b' } }];
const warnings = (spec: object): string[] =>
  virtualServiceWarnings({ hosts: ['a.b'], ...spec }).map(({ path, message }) => `${path} ${message}`);

it('says which routes nothing reaches, because an earlier one takes everything', () => {
  const everything = [{ match: [{ uri: { prefix: '/' }, name: 'all' }], route }, { route }];
  expect(warnings({ http: everything })).toEqual([
    'http[1] is never reached: http[0] takes everything; move it before http[0]',
  ]);
  expect(
    warnings({ http: [{ match: [{ uri: { prefix: '/' }, method: { exact: 'GET' } }], route }, { route }] }),
  ).toEqual([]);
  expect(warnings({ tcp: [{ match: [{}], route }, { route }] })).toEqual([
    'tcp[1] is never reached: tcp[0] takes everything; move it before tcp[0]',
  ]);
  expect(warnings({ tcp: [{ match: [{ port: 1 }], route }, { route }] })).toEqual([]);
});

it('says which matches are there twice, of requests and of connections', () => {
  const tls = [
    { match: [{ sniHosts: ['a.b'] }], route },
    { match: [{ sniHosts: ['a.b'] }], route },
  ];
  expect(warnings({ tls })).toEqual(['tls[1].match[0] is never reached: tls[0] has the same match; remove one']);
  const tcp = [{ match: [{ port: 1 }, { port: 1 }], route }];
  expect(warnings({ tcp })).toEqual(['tcp[0].match[1] is never reached: tcp[0] has the same match; remove one']);
});

it('says which faults nobody has, for no percentage is said', () => {
  const fault = { delay: { fixedDelay: '1s' }, abort: { httpStatus: 503, percentage: { value: 100 } } };
  expect(warnings({ http: [{ route }, { fault, match: [{ port: 1 }] }] })).toContainEqual(
    'http[1].fault.delay.percentage is not there, so that no request has the fault: write {value: 100} for all of them',
  );
  expect(warnings({ http: [{ fault: { abort: fault.abort }, route }] })).toEqual([]);
});

it('says that claims are known at gateways only', () => {
  const http = [{ match: [{ headers: { '@request.auth.claims.group': { exact: 'x' } } }], route }];
  expect(warnings({ http, gateways: ['front', 'mesh'] })).toEqual([
    'http[0].match[0].headers["@request.auth.claims.group"] is known at gateways only: in the mesh it never matches',
  ]);
  expect(warnings({ http, gateways: ['front'] })).toEqual([]);
});

it.each([
  ['/b/\\1', undefined],
  ['/b/\\0\\\\', undefined],
  ['/b/\\3', 'it refers to group 3, and match has 1 capturing group'],
  ['/b/\\a', '\\ must be followed by a digit or \\, got "\\\\a"'],
  ['/b/\\', '\\ must be followed by a digit or \\, got "\\\\"'],
])('warns of a uriRegexRewrite that leaves every path as it is: %s', (rewrite, reason) => {
  const http = [{ rewrite: { uriRegexRewrite: { match: '^/a/([a-z]+)$', rewrite } }, route }];
  const path = 'http[0].rewrite.uriRegexRewrite.rewrite';
  expect(warnings({ http })).toEqual(reason === undefined ? [] : [`${path} leaves every path as it is: ${reason}`]);
});
