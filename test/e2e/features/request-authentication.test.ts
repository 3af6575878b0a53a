/** RequestAuthentication: JWTs of requests, and which requests they admit. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { loggedLine } from '../../harness/logged-line.ts';
import type { HttpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, object, serviceEntry, virtualService } from './harness/objects.ts';
import { bearer, TokenIssuer } from './harness/tokens.ts';

let mesh: FeatureMesh;
let backend: HttpBackend;
let port: number;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { edge: { type: 'router', labels: { istio: 'edge' } } },
    env: { PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: '200ms', ALLOWED_CIDRS_IN_JWKS_URIS: '127.0.0.0/8' },
  });
});

afterAll(() => mesh?.stop());

beforeEach(async () => {
  backend = await mesh.http('cart');
  port = await mesh.port();
});

async function guarded(jwtRules: object[], ...policies: string[]): Promise<void> {
  await mesh.apply(
    [
      serviceEntry('cart.shop.test', { port: await mesh.port(), backends: [backend] }),
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: ['*'] }]),
      virtualService('shop.test', {
        gateways: ['front'],
        http: [{ route: [{ destination: { host: 'cart.shop.test' } }] }],
      }),
      object('security.istio.io/v1', 'RequestAuthentication', 'shop', 'jwt', { jwtRules }),
      ...policies,
    ].join('\n---\n'),
  );
}

const allow = (...rules: object[]): string =>
  object('security.istio.io/v1', 'AuthorizationPolicy', 'shop', 'allow', { rules });

const statusWith = (headers: Record<string, string> = {}, path = '/') =>
  mesh.request('edge', { port, host: 'shop.test', path, headers });
const status = async (headers: Record<string, string> = {}, path = '/') => (await statusWith(headers, path)).status;

/** The policy takes effect once its keys are fetched. */
const inForce = (token: string): Promise<unknown> =>
  eventually('a token is taken', async () => (await status(bearer(token))) === 200);

test('a token must be signed by its issuer, and requests without a token pass unless a policy requires one', async () => {
  const [id, foreignIssuer] = [new TokenIssuer('https://id.test'), new TokenIssuer('https://id.test')];
  const rule = { issuer: id.name, jwks: id.keySet, audiences: ['shop'], outputPayloadToHeader: 'x-payload' };
  await guarded([rule]);
  const token = id.token({ aud: 'shop' });
  await inForce(token);
  expect(await status()).toBe(200);
  expect(await status(bearer(id.token({ aud: 'other' })))).toBe(403);
  expect(await status(bearer(foreignIssuer.token({ aud: 'shop' })))).toBe(401);
  expect(await status(bearer(id.token({ aud: 'shop', exp: 1 })))).toBe(401);
  const { headers } = (await statusWith(bearer(token))).seen;
  expect(headers.authorization).toBeUndefined();
  expect(JSON.parse(Buffer.from(headers['x-payload']!, 'base64url').toString())).toMatchObject({ sub: 'user' });
  await guarded([rule], allow({ from: [{ source: { requestPrincipals: ['*'] } }] }));
  expect([await status(), await status(bearer(token))]).toEqual([403, 200]);
});

test('a required token must be present and valid, even if the request has other tokens', async () => {
  const [id, scope] = [new TokenIssuer('https://id.test'), new TokenIssuer('https://scope.test')];
  const scopeRule = { issuer: scope.name, jwks: scope.keySet, fromHeaders: [{ name: 'x-scope' }] };
  const idRule = { issuer: id.name, jwks: id.keySet };
  const [first, second] = [bearer(id.token({})), { 'x-scope': scope.token({}) }];
  const statuses = async () => [
    await status(),
    await status(first),
    await status(second),
    await status({ ...first, ...second }),
  ];
  const forged = { 'x-scope': new TokenIssuer(scope.name).token({}) };
  await guarded([
    { ...idRule, presence: 'REQUIRED' },
    { ...scopeRule, presence: 'REQUIRED' },
  ]);
  await eventually('both are taken', async () => (await status({ ...first, ...second })) === 200);
  expect(await statuses()).toEqual([401, 401, 401, 200]);
  await guarded([
    { ...idRule, presence: 'REQUIRED' },
    { ...scopeRule, presence: 'OPTIONAL' },
  ]);
  await inForce(id.token({}));
  expect(await statuses()).toEqual([401, 200, 401, 200]);
  expect(await status({ ...first, ...forged })).toBe(401);
  await guarded([{ ...idRule, presence: 'REQUIRED' }]);
  await inForce(id.token({}));
  expect(await statuses()).toEqual([401, 200, 401, 200]);
});

test('policies match principals and claims of tokens', async () => {
  const [one, two] = [new TokenIssuer('https://one.test'), new TokenIssuer('https://two.test/a')];
  await guarded(
    [one, two].map(({ name, keySet }) => ({ issuer: name, jwks: keySet })),
    allow(
      { from: [{ source: { requestPrincipals: ['https://one.test/ada', 'https://two.test/*'] } }] },
      { when: [{ key: 'request.auth.claims[groups]', values: ['dev*'] }] },
      { when: [{ key: 'request.auth.claims[realm][role]', values: ['admin'] }] },
      { when: [{ key: 'request.auth.claims[scope]', values: ['write'] }] },
      {
        when: [
          { key: 'request.auth.audiences', values: ['shop'] },
          { key: 'request.auth.presenter', values: ['app'] },
        ],
      },
    ),
  );
  const statusAs = (claims: object, issuer = one) => status(bearer(issuer.token(claims as never)));
  expect(await statusAs({ sub: 'ada' })).toBe(200);
  expect(await statusAs({ sub: 'bob' })).toBe(403);
  expect(await statusAs({ sub: 'bob' }, two)).toBe(200);
  expect(await statusAs({ groups: ['ops', 'developers'] })).toBe(200);
  expect(await statusAs({ groups: 'devs' })).toBe(200);
  expect(await statusAs({ groups: ['ops'] })).toBe(403);
  expect(await statusAs({ realm: { role: ['admin'] } })).toBe(200);
  expect(await statusAs({ realm: { role: 'user' } })).toBe(403);
  expect(await statusAs({ scope: 'read write' })).toBe(200);
  expect(await statusAs({ scope: 'read writer' })).toBe(403);
  expect(await statusAs({ aud: ['other', 'shop'], azp: 'app' })).toBe(200);
  expect(await statusAs({ aud: 'shop' })).toBe(403);
});

test('tokens are read from the locations of the rule', async () => {
  const id = new TokenIssuer('https://id.test');
  const tokenLocations = {
    fromHeaders: [{ name: 'x-jwt', prefix: 'JWT ' }],
    fromParams: ['token'],
    fromCookies: ['session'],
  };
  const keptFields = { forwardOriginalToken: true, outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }] };
  await guarded(
    [{ issuer: id.name, jwks: id.keySet, ...tokenLocations, ...keptFields }],
    allow({ from: [{ source: { requestPrincipals: ['*'] } }] }),
  );
  const token = id.token();
  await eventually('a token is taken', async () => (await status({ 'x-jwt': `JWT ${token}` })) === 200);
  expect(await status({}, `/?token=${token}`)).toBe(200);
  expect(await status({ cookie: `session=${token}` })).toBe(200);
  expect(await status(bearer(token))).toBe(403);
  const { headers } = (await statusWith({ 'x-jwt': `JWT ${token}` })).seen;
  expect([headers['x-jwt'], headers['x-sub']]).toEqual([`JWT ${token}`, 'user']);
});

test('keys are fetched and rotated, and the last keys remain valid while the issuer fails', async () => {
  const id = new TokenIssuer('https://id.test');
  const issuer = await mesh.http('issuer', { respond: (_, response) => void response.end(id.keySet) });
  await guarded([{ issuer: id.name, jwksUri: `http://127.0.0.1:${issuer.port}/keys` }]);
  const oldToken = id.token();
  await inForce(oldToken);
  id.rotate();
  await inForce(id.token());
  expect(await status(bearer(oldToken))).toBe(401);
  const { length } = issuer.seen;
  issuer.respond = (_, response) => {
    response.statusCode = 500;
    response.end();
  };
  await eventually('the issuer was asked again', () => issuer.seen.length > length + 2);
  expect(await status(bearer(id.token()))).toBe(200);
  await eventually('the failure is told', () =>
    mesh.pilot.lines.some((line) => loggedLine('key-set.failed', { reason: /HTTP status 500/ }).test(line)),
  );
  expect(await mesh.page('/metrics')).toMatch(/pilot_jwks_resolver_network_fetch_fail_total [1-9]/);
});

test('tokens of an issuer are rejected while its keys are unavailable', async () => {
  let keysFrom = '/no-such-place';
  const server = await mesh.http('issuer', {
    respond: ({ url }, response) => {
      if (url === '/.well-known/openid-configuration') {
        response.end(JSON.stringify({ issuer: id.name, jwks_uri: `${id.name}${keysFrom}` }));
      } else if (url === '/keys') response.end(id.keySet);
      else {
        response.statusCode = 404;
        response.end();
      }
    },
  });
  const id = new TokenIssuer(`http://127.0.0.1:${server.port}`);
  await guarded([{ issuer: id.name }]);
  await eventually('the token is refused', async () => (await status(bearer(id.token()))) === 401);
  keysFrom = '/keys';
  // A failed issuer is retried after a minute; a changed object is fetched immediately.
  await guarded([{ issuer: id.name, timeout: '20s' }]);
  await inForce(id.token());
});

test('keys that Envoy rejects affect only their issuer', async () => {
  const id = new TokenIssuer('https://id.test');
  await guarded([
    { issuer: 'https://bad.test', jwks: '{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}' },
    { issuer: 'https://none.test', jwks: '{"keys":[]}' },
    { issuer: id.name, jwks: id.keySet },
  ]);
  await inForce(id.token());
  expect(await status()).toBe(200);
  expect(await status(bearer(id.token({ iss: 'https://bad.test' })))).toBe(401);
});
