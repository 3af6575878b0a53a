import { expect, it } from 'vitest';
import { claimPath, isClaimKey } from './claim-key.ts';

it.each([
  ['@request.auth.claims.groups', ['groups']],
  ['@request.auth.claims.realm.roles', ['realm', 'roles']],
  ['@request.auth.claims[example.com/roles][admin]', ['example.com/roles', 'admin']],
  ['@request.auth.claims', undefined],
  ['@request.auth.claims.', undefined],
  ['@request.auth.claims.a..b', undefined],
  ['@request.auth.claims[]', undefined],
  ['@request.auth.claims[a]b', undefined],
  ['@request.auth.claimsgroups', undefined],
  ['@request.auth.principal', undefined],
  ['groups', undefined],
])('the header match %s names the claim %j', (key, path) => {
  expect(claimPath(key)).toEqual(path);
});

it('a claim is distinguished from a header by its first character, which header names cannot contain', () => {
  expect([isClaimKey('@request.auth.claims.groups'), isClaimKey('x-groups')]).toEqual([true, false]);
});
