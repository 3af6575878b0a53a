/** Tests outcomes of requests that do not reach a server. */
import { expect, test } from 'vitest';
import { type GivenNode, givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { shapeOf } from '../../model/proxy/proxy-shape.ts';
import { explain } from '../../networking/explain/explain.ts';
import type { RequestOutcome } from '../../networking/explain/outcome.ts';
import type { HttpQuestion } from '../../networking/explain/question.ts';
import { generatedConfiguration } from './generated.ts';
import { type QuestionFlags, questionOf } from './question-of.ts';

const edge: GivenNode = { type: 'router', namespace: 'shop', labels: { istio: 'edge' } };

const gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec:
  selector: {istio: edge}
  servers: [{port: {number: 18080, name: http, protocol: HTTP}, hosts: ["*.shop.test"]}]
`;

function serviceEntry(name: string, endpoints: string): string {
  return `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: ${endpoints}
`;
}

function virtualService(http: string): string {
  return `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: m, namespace: shop}
spec: {hosts: [m.shop.test], gateways: [gw], http: ${http}}
`;
}

function outcomeOf(yaml: string, questionFlags: Partial<QuestionFlags> = {}): RequestOutcome {
  const { context } = givenMesh(yaml);
  const configuration = generatedConfiguration(shapeOf(givenProxy(edge), context), context);
  return explain(configuration, questionOf({ url: 'http://m.shop.test:18080/', ...questionFlags })).outcome;
}

const oneServer = serviceEntry('a', '[{address: 10.0.0.1}]');
const toA = virtualService('[{route: [{destination: {host: a.test}}]}]');

test.each([
  ['a host that does not exist', '{host: nowhere.test}'],
  ['a subset that does not exist', '{host: a.test, subset: v9}'],
  ['a port that does not exist', '{host: a.test, port: {number: 81}}'],
])('explain reports 503 with flag NC for a route to %s', (_, destination) => {
  const outcome = outcomeOf(gateway + oneServer + virtualService(`[{route: [{destination: ${destination}}]}]`));
  expect(outcome).toMatchObject({ kind: 'no cluster', status: 503, flag: 'NC' });
});

test('explain reports 503 with flag UH for a cluster without endpoints', () => {
  const outcome = outcomeOf(gateway + serviceEntry('a', '[]') + toA);
  expect(outcome).toMatchObject({ kind: 'no endpoints', status: 503, flag: 'UH' });
});

test('explain reports the share of failing requests if one of two weighted clusters is missing', () => {
  const routes = '[{route: [{destination: {host: a.test}, weight: 90}, {destination: {host: no.test}, weight: 10}]}]';
  expect(outcomeOf(gateway + oneServer + virtualService(routes))).toMatchObject({
    kind: 'divided',
    shares: [
      { share: 0.9, outcome: { kind: 'forwarded' } },
      { share: 0.1, outcome: { kind: 'no cluster', flag: 'NC' } },
    ],
  });
});

test('explain reports 503 with flag UF for TLS settings that no server can satisfy', () => {
  const rule = `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, namespace: shop}
spec: {host: a.test, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
`;
  expect(outcomeOf(gateway + oneServer + toA + rule)).toMatchObject({
    kind: 'upstream refused',
    status: 503,
    flag: 'UF',
  });
});

test('explain reports flag FI if all requests are aborted, and a share if some are aborted', () => {
  const fault = (percent: number): string =>
    virtualService(
      `[{fault: {abort: {httpStatus: 418, percentage: {value: ${percent}}}}, route: [{destination: {host: a.test}}]}]`,
    );
  expect(outcomeOf(gateway + oneServer + fault(100))).toMatchObject({ kind: 'aborted', status: 418, flag: 'FI' });
  expect(outcomeOf(gateway + oneServer + fault(25))).toMatchObject({
    kind: 'divided',
    shares: [{ share: 0.25, outcome: { kind: 'aborted' } }, { share: 0.75 }],
  });
});

const policy = (spec: string): string => `---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: p, namespace: shop}
spec: ${spec}
`;

test('explain names an AuthorizationPolicy that denies the request, even without a route', () => {
  const deny = policy('{action: DENY, rules: [{to: [{operation: {paths: [/admin*]}}]}]}');
  const denied = outcomeOf(gateway + oneServer + toA + deny, { url: 'http://m.shop.test:18080/admin' });
  expect(denied).toMatchObject({
    kind: 'denied',
    status: 403,
    details: 'rbac_access_denied_matched_policy[ns[shop]-policy[p]-rule[0]]',
  });
  expect(outcomeOf(gateway + oneServer + deny, { url: 'http://x.shop.test:18080/admin' })).toMatchObject({
    status: 403,
  });
  expect(outcomeOf(gateway + oneServer + toA + deny)).toEqual({ kind: 'forwarded' });
});

test('explain requires --source to evaluate a policy that matches addresses', () => {
  const allow = policy('{rules: [{from: [{source: {ipBlocks: [10.9.0.0/16]}}]}]}');
  const yaml = gateway + oneServer + toA + allow;
  expect(outcomeOf(yaml)).toMatchObject({ kind: 'not decided', filter: 'envoy.filters.http.rbac' });
  expect(outcomeOf(yaml, { source: '10.9.1.1' })).toEqual({ kind: 'forwarded' });
  expect(outcomeOf(yaml, { source: '10.8.1.1' })).toMatchObject({ kind: 'denied', status: 403 });
});

const authentication = (keys: string): string => `---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: r, namespace: shop}
spec: {jwtRules: [{issuer: https://one.test, ${keys}}]}
`;

function unsignedToken(claims: object): string {
  const encode = (tokenPart: object): string => Buffer.from(JSON.stringify(tokenPart)).toString('base64url');
  return `authorization=Bearer ${encode({ alg: 'RS256', kid: 'k' })}.${encode({ iss: 'https://one.test', ...claims })}.c2ln`;
}

test('explain reports 401 for a token with an invalid signature, and accepts requests without a token', () => {
  const key =
    '{"keys":[{"kty":"EC","x":"WvdbDq3OdHLFuULHLy0P7XNOZmSE9I8Yar6cn9B86WA","y":"2gfd-QBU93JLXDDc9HovTB-EW8g4K_9tNuq9_h-nTqw","crv":"P-256"}]}';
  const yaml = gateway + oneServer + toA + authentication(`jwks: '${key}'`);
  expect(outcomeOf(yaml, { headers: [unsignedToken({})] })).toMatchObject({
    kind: 'denied',
    status: 401,
    details: 'jwt_authn_access_denied',
  });
  expect(outcomeOf(yaml)).toEqual({ kind: 'forwarded' });
});

test('explain denies only an expired token if the keys are known only to a running control plane', () => {
  const yaml = gateway + oneServer + toA + authentication('jwksUri: https://one.test/keys');
  expect(outcomeOf(yaml, { headers: [unsignedToken({})] })).toMatchObject({ kind: 'not decided' });
  expect(outcomeOf(yaml, { headers: [unsignedToken({ exp: 1 })] })).toMatchObject({ kind: 'denied', status: 401 });
});

test('explain reports a failed gRPC request with status 200 and the error in grpc-status, as Envoy does', () => {
  const missingDestination = virtualService('[{route: [{destination: {host: nowhere.test}}]}]');
  const outcome = outcomeOf(gateway + oneServer + missingDestination, { headers: ['content-type=application/grpc'] });
  expect(outcome).toMatchObject({ kind: 'no cluster', status: 200, grpcStatus: 14, flag: 'NC' });
});

test.each([
  ['client.test', 'forwarded'],
  ['other.test', 'closed'],
  ['spiffe://cluster.local/ns/shop/sa/web', 'forwarded'],
  ['spiffe://cluster.local/ns/shop/sa/other', 'closed'],
])(
  'explain reports that a connection with the client certificate of %s to a gateway with subjectAltNames is %s',
  (principal, kind) => {
    const names = '[client.test, "spiffe://cluster.local/ns/shop/sa/web"]';
    const server = `{port: {number: 18443, name: https, protocol: HTTPS}, hosts: ["*.shop.test"], tls: {mode: MUTUAL, credentialName: web, subjectAltNames: ${names}}}`;
    const outcome = outcomeOf(gateway.replace(/servers: .*/, `servers: [${server}]`) + oneServer + toA, {
      url: 'https://m.shop.test:18443/',
      principal,
    });
    expect(outcome.kind).toBe(kind);
  },
);

/** Outcome of a request that a URL cannot express. */
function outcomeOfRequest(http: Partial<HttpQuestion>): RequestOutcome {
  const { context } = givenMesh(gateway + oneServer + toA);
  const configuration = generatedConfiguration(shapeOf(givenProxy(edge), context), context);
  const question = questionOf({ url: 'http://m.shop.test:18080/' });
  return explain(configuration, { ...question, http: { ...question.http!, ...http } }).outcome;
}

test.each([
  ['HTTP/1.0', { version: 'HTTP/1.0' }, { status: 426, flag: 'DPE', details: 'low_version' }],
  ['a method in lower case', { method: 'get' }, { status: 400, flag: 'DPE', details: 'http1.codec_error' }],
  ['an unknown method', { method: 'FOO' }, { status: 400, flag: 'DPE', details: 'http1.codec_error' }],
  ['CONNECT with a path', { method: 'CONNECT' }, { status: 400, flag: 'DPE', details: 'http1.invalid_url' }],
  ['more than 60 KiB of headers', { path: `/${'a'.repeat(70_000)}` }, { status: 431, flag: 'DPE' }],
  [
    'more than 60 KiB of headers in HTTP/2',
    { version: 'HTTP/2', headers: { 'x-large': 'a'.repeat(61_500) } },
    { kind: 'closed', flag: 'DR' },
  ],
  [
    'CONNECT with a host and a port',
    { method: 'CONNECT', path: 'm.shop.test:443' },
    { kind: 'no route', status: 404, flag: 'NR' },
  ],
  [
    'CONNECT in HTTP/2',
    { version: 'HTTP/2', method: 'CONNECT', path: '' },
    { kind: 'no route', status: 404, flag: 'NR' },
  ],
  ['a target with another host', { path: 'http://other.test/' }, { kind: 'no route', status: 404, flag: 'NR' }],
] as const)("explain reports Envoy's response to %s", (_, http, expected) => {
  expect(outcomeOfRequest(http)).toMatchObject(expected);
});

test("explain reports Envoy's response to a request without a Host header", () => {
  const { authority: _, ...otherSteps } = questionOf({ url: 'http://m.shop.test:18080/' }).http!;
  const { context } = givenMesh(gateway + oneServer + toA);
  const configuration = generatedConfiguration(shapeOf(givenProxy(edge), context), context);
  const question = { ...questionOf({ url: 'http://m.shop.test:18080/' }), http: otherSteps };
  expect(explain(configuration, question).outcome).toMatchObject({ status: 400, details: 'missing_host_header' });
});

test('explain ignores white space around HTTP/1 header values', () => {
  const asGrpc = { headers: { 'content-type': ' application/grpc ' }, authority: 'other.test' };
  expect(outcomeOfRequest(asGrpc)).toMatchObject({ kind: 'no route', status: 200, grpcStatus: 12 });
});

test('explain routes a target URL by its host and path', () => {
  expect(outcomeOfRequest({ authority: 'other.test', path: 'http://m.shop.test:18080' })).toMatchObject({
    kind: 'forwarded',
  });
});

test('explain does not normalize the path of a URL', () => {
  const path = (url: string) => questionOf({ url }).http?.path;
  expect(path('http://a.test/x/../%2e%2E/%41?q=/../#part')).toBe('/x/../%2e%2E/%41?q=/../');
  expect(path('http://a.test')).toBe('/');
  expect(path('http://a.test?q=1')).toBe('/?q=1');
});
