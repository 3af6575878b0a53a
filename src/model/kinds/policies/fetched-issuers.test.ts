import { describe, expect, it } from 'vitest';
import { readConfigObject } from '../../config/config-file.ts';
import { maxFetchedIssuers } from './request-authentication.ts';

function read(jwtRules: readonly object[]) {
  const metadata = { name: 'jwt', namespace: 'mallory' };
  const object = { apiVersion: 'security.istio.io/v1', kind: 'RequestAuthentication', metadata, spec: { jwtRules } };
  return readConfigObject('k8s://', object, { creationTimestamp: 0 });
}

const times = (count: number, rule: (i: number) => object) => Array.from({ length: count }, (_, i) => rule(i));
const issuerByUri = (i: number) => ({ issuer: 'a', jwksUri: `https://idp.test/${i}` });
const issuerByDiscovery = (i: number) => ({ issuer: `https://idp.test/${i}` });

describe('issuers in an object whose keys are fetched', () => {
  it.each([
    ['addresses of keys', issuerByUri],
    ['issuers', issuerByDiscovery],
  ])('are limited by number: %s', (_, rule) => {
    expect(read(times(maxFetchedIssuers, rule)).problems).toEqual([]);
    const { config, problems } = read(times(maxFetchedIssuers + 1, rule));
    expect(config).toBeUndefined();
    expect(problems).toMatchObject([
      {
        field: expect.stringContaining('jwtRules'),
        message: expect.stringMatching(/has 101 issuers whose keys are fetched, the limit is 100: .*LIMIT_EXCEEDED/),
      },
    ]);
  });

  it('exclude issuers whose keys the object contains', () => {
    expect(read(times(1_000, () => ({ issuer: 'a', jwks: '{"keys":[{"kty":"EC"}]}' }))).problems).toEqual([]);
  });

  it('have a warning if their timeout exceeds the maximum', () => {
    expect(read([{ ...issuerByUri(0), timeout: '30s' }]).problems).toEqual([]);
    expect(read([{ ...issuerByUri(0), timeout: '31s' }]).problems).toMatchObject([
      {
        severity: 'warning',
        field: expect.stringContaining('jwtRules[0].timeout'),
        message: expect.stringContaining('30s'),
      },
    ]);
  });
});
