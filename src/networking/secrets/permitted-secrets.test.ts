import { describe, expect, it } from 'vitest';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { ReferenceGrants } from '../../model/push-context/reference-grants.ts';
import { permittedSecrets } from './permitted-secrets.ts';

describe('names of secrets that a client may ask for', () => {
  const names = ['kubernetes://web', 'kubernetes://shop/web', 'kubernetes://other/web', 'nonsense'];

  it('are those of the namespace that it is of', () => {
    expect(permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' })).toEqual([
      'kubernetes://web',
      'kubernetes://shop/web',
    ]);
    expect(permittedSecrets(names, { namespace: 'other', ownNamespace: 'other' })).toEqual([
      'kubernetes://web',
      'kubernetes://other/web',
    ]);
  });

  it('are none when nobody knows who it is, or when it is of another namespace than its node says', () => {
    expect(permittedSecrets(names, { namespace: undefined, ownNamespace: 'shop' })).toEqual([]);
    expect(permittedSecrets(['kubernetes://web'], { namespace: 'other', ownNamespace: 'shop' })).toEqual([]);
  });

  it('are the same list for the same list, and all of them the list itself', () => {
    expect(permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' })).toBe(
      permittedSecrets(names, { namespace: 'shop', ownNamespace: 'shop' }),
    );
    const good = ['kubernetes://web'];
    expect(permittedSecrets(good, { namespace: 'shop', ownNamespace: 'shop' })).toBe(good);
    expect(permittedSecrets(names, { namespace: undefined, ownNamespace: 'shop' })).toBe(
      permittedSecrets(good, { namespace: undefined, ownNamespace: 'b' }),
    );
  });
});

describe('names of Secrets of another namespace', () => {
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

  it('are permitted by a grant to the Gateways of the verified namespace: all Secrets, or the named one', () => {
    expect(permittedBy(grantOf({}))).toEqual(names.slice(0, 3));
    expect(permittedBy(grantOf({ name: 'web' }))).toEqual(names.slice(0, 2));
  });

  it.each<[string, object, object?]>([
    ['another kind of object', { kind: 'Service' }],
    ['another group', { group: 'example.com' }],
    ['another kind of referrer', {}, { kind: 'HTTPRoute' }],
    ['a referrer of another group', {}, { group: 'example.com' }],
    ['another namespace', {}, { namespace: 'else' }],
  ])('are not permitted by a grant for %s', (_, to, from) => {
    expect(permittedBy(grantOf(to, from))).toEqual([]);
  });

  it('are not permitted to a client whose node names the granted namespace and whose identity is of another', () => {
    expect(permittedBy(grantOf({}), 'thief', 'edge')).toEqual([]);
    expect(permittedBy(grantOf({}), 'edge', 'thief')).toEqual([]);
  });

  it('are no longer permitted when the grant is withdrawn', () => {
    expect(permittedBy(grantOf({}))).toHaveLength(3);
    expect(permittedBy(ReferenceGrants.none)).toEqual([]);
  });
});
