/** Routes of a gateway by the claims of a verified JWT. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { gateway, object, virtualService } from './harness/objects.ts';
import { bearer, TokenIssuer } from './harness/tokens.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({ proxies: { edge: { type: 'router', labels: { istio: 'edge' } } } });
});

afterAll(() => mesh.stop());

test('a route matches a claim that is a string, a list containing a value, nested, present, or absent', async () => {
  const port = await mesh.port();
  const id = new TokenIssuer('https://id.test');
  const respondWith = (string: string): object => ({ directResponse: { status: 200, body: { string } } });
  const claims = (field: string, key: string, match: object): object => ({
    match: [{ [field]: { [`@request.auth.claims${key}`]: match } }],
  });
  await mesh.apply(
    [
      gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: ['*'] }]),
      object('security.istio.io/v1', 'RequestAuthentication', 'shop', 'jwt', {
        jwtRules: [{ issuer: id.name, jwks: id.keySet, forwardOriginalToken: true }],
      }),
      virtualService('shop.test', {
        gateways: ['front'],
        http: [
          { ...claims('headers', '.group', { exact: 'staff' }), ...respondWith('staff') },
          { ...claims('headers', '[realm][roles]', { prefix: 'adm' }), ...respondWith('admin') },
          { ...claims('headers', '.beta', {}), ...respondWith('beta') },
          { ...claims('withoutHeaders', '.group', { exact: 'guest' }), ...respondWith('no guest') },
          respondWith('guest'),
        ],
      }),
    ].join('\n---\n'),
  );
  const takenRoute = async (claims: Record<string, unknown> | undefined): Promise<string> =>
    (
      await mesh.request('edge', {
        port,
        host: 'shop.test',
        headers: claims === undefined ? {} : bearer(id.token(claims)),
      })
    ).body;
  expect(await takenRoute({ group: 'staff' })).toBe('staff');
  expect(await takenRoute({ group: ['guest', 'staff'] })).toBe('staff');
  expect(await takenRoute({ group: 'guest', realm: { roles: ['user', 'administrator'] } })).toBe('admin');
  expect(await takenRoute({ group: 'guest', beta: 'yes' })).toBe('beta');
  expect(await takenRoute({ group: 'other' })).toBe('no guest');
  expect(await takenRoute({ group: 'guest' })).toBe('guest');
  // A request without a token has no claims, and claims of an unverified token do not count.
  expect(await takenRoute(undefined)).toBe('no guest');
  const foreignIssuer = new TokenIssuer('https://id.test');
  const refusedResponse = await mesh.request('edge', {
    port,
    host: 'shop.test',
    headers: bearer(foreignIssuer.token({ group: 'staff' })),
  });
  expect(refusedResponse.status).toBe(401);
});
