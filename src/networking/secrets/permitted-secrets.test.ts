import { describe, expect, it } from 'vitest';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { ReferenceGrants } from '../../model/push-context/reference-grants.ts';
import { permittedSecrets } from './permitted-secrets.ts';

describe('Secret names that a client requests', () => {
  const names = ['kubernetes://web', 'kubernetes://shop/web', 'kubernetes://other/web', 'nonsense'];

  it('a client can request Secrets of its own namespace', () => {
    expect(permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' })).toEqual([
      'kubernetes://web',
      'kubernetes://shop/web',
    ]);
    expect(permittedSecrets(names, { namespace: 'other', ownNamespace: 'other' })).toEqual([
      'kubernetes://web',
      'kubernetes://other/web',
    ]);
  });

  it('a client cannot request Secrets without identity or if its namespace differs from that of its identity', () => {
    expect(permittedSecrets(names, { namespace: undefined, ownNamespace: 'shop' })).toEqual([]);
    expect(permittedSecrets(['kubernetes://web'], { namespace: 'other', ownNamespace: 'shop' })).toEqual([]);
  });

  it('equal lists have the same result, which is the list itself if it is permitted completely', () => {
    expect(permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' })).toBe(
      permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' }),
    );
    const permittedNames = ['kubernetes://web'];
    expect(permittedSecrets(permittedNames, { namespace: 'shop', ownNamespace: 'shop' })).toBe(permittedNames);
    expect(permittedSecrets(names, { namespace: undefined, ownNamespace: 'shop' })).toBe(
      permittedSecrets(permittedNames, { namespace: undefined, ownNamespace: 'b' }),
    );
  });
});

describe('Secret names of another namespace', () => {
  const names = [
    'kubernetes://shop/web',
    'kubernetes://shop/web-cacert',
    'kubernetes://shop/key',
    'configmap://shop/web',
  ];
  const grantOf = (to: object, from: object = {}): ReferenceGrants =>
    new ReferenceGrants([
      givenObject('ReferenceGrant', 'shop', 'grant', {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'edge', ...from }],
        to: [{ group: '', kind: 'Secret', ...to }],
      }) as never,
    ]);
  const permittedBy = (grants: ReferenceGrants, namespace = 'edge', ownNamespace = 'edge'): readonly string[] =>
    permittedSecrets(names, { namespace, ownNamespace, grants });

  it('a grant for Gateways of the verified namespace permits all Secrets or the named one', () => {
    expect(permittedBy(grantOf({}))).toEqual(names.slice(0, 3));
    expect(permittedBy(grantOf({ name: 'web' }))).toEqual(names.slice(0, 2));
  });

  it.each<[string, object, object?]>([
    ['another kind of object', { kind: 'Service' }],
    ['another group', { group: 'example.com' }],
    ['another kind of referrer', {}, { kind: 'HTTPRoute' }],
    ['a referrer of another group', {}, { group: 'example.com' }],
    ['another namespace', {}, { namespace: 'else' }],
  ])('a grant for %s does not permit a Secret', (_, to, from) => {
    expect(permittedBy(grantOf(to, from))).toEqual([]);
  });

  it('a client cannot request a granted Secret if only its node is in the granted namespace, not its identity', () => {
    expect(permittedBy(grantOf({}), 'thief', 'edge')).toEqual([]);
    expect(permittedBy(grantOf({}), 'edge', 'thief')).toEqual([]);
  });

  it('Secrets are no longer permitted after the grant is deleted', () => {
    expect(permittedBy(grantOf({}))).toHaveLength(3);
    expect(permittedBy(ReferenceGrants.empty)).toEqual([]);
  });
});
