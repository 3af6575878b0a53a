import { expect, test } from 'vitest';
import { authorize } from './authorization.ts';

const node = (metadata: Record<string, unknown> = {}) => ({
  id: 'sidecar~10.0.0.1~app.shop~shop.svc.cluster.local',
  cluster: '',
  metadata,
});
const of = (namespace: string, account = 'default'): string => `spiffe://cluster.local/ns/${namespace}/sa/${account}`;

test('a client without an identity is accepted: nothing was asked of it', () => {
  expect(authorize(node(), [])).toEqual({ identity: undefined });
});

test.each([
  ['the namespace is in the domain', {}, of('shop')],
  ['the namespace in the metadata comes first', { NAMESPACE: 'other' }, of('other')],
  ['the account is the one that the node names', { SERVICE_ACCOUNT: 'cart' }, of('shop', 'cart')],
])('an identity of the node is accepted: %s', (_, metadata, identity) => {
  expect(authorize(node(metadata), ['DNS', of('elsewhere'), identity])).toEqual({ identity });
});

test.each([
  [
    'another namespace',
    {},
    [of('other')],
    'no identity of namespace shop among spiffe://cluster.local/ns/other/sa/default',
  ],
  ['another account', { SERVICE_ACCOUNT: 'cart' }, [of('shop')], expect.stringContaining('shop/cart')],
  [
    'row 23: the metadata says another namespace',
    { NAMESPACE: 'b' },
    [of('a')],
    expect.stringContaining('namespace b'),
  ],
  ['no SPIFFE id', {}, ['shop', 'http://x/ns/shop/sa/default', 'spiffe://td/ns/shop/sa/a/b'], expect.any(String)],
])('an identity of somebody else is refused: %s', (_, metadata, identities, reason) => {
  expect(authorize(node(metadata), identities)).toEqual({ reason });
});
