import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { parseNode } from '../../../model/node/parse-node.ts';
import { authorize } from './authorization.ts';

const node = (metadata: Record<string, unknown> = {}) => ({
  id: 'sidecar~10.0.0.1~app.shop~shop.svc.cluster.local',
  cluster: '',
  metadata,
});
const of = (namespace: string, account = 'default'): string => `spiffe://cluster.local/ns/${namespace}/sa/${account}`;

test('Authorization accepts a client without an identity, because its port does not require one', () => {
  expect(authorize(node(), [])).toEqual({ identity: undefined });
});

test.each([
  ['with the namespace in the domain of the ID', {}, of('shop')],
  ['with another namespace in the metadata, which takes precedence', { NAMESPACE: 'other' }, of('other')],
  ['with the service account in the metadata', { SERVICE_ACCOUNT: 'cart' }, of('shop', 'cart')],
])('Authorization accepts an identity that matches the node: %s', (_, metadata, identity) => {
  expect(authorize(node(metadata), [identity])).toEqual({ identity });
});

test.each([
  [
    'another namespace',
    {},
    [of('other')],
    'expected exactly one identity, of namespace shop, got spiffe://cluster.local/ns/other/sa/default',
  ],
  ['another account', { SERVICE_ACCOUNT: 'cart' }, [of('shop')], expect.stringContaining('shop/cart')],
  ['row 23: another namespace in the metadata', { NAMESPACE: 'b' }, [of('a')], expect.stringContaining('namespace b')],
  ['not a SPIFFE ID', {}, ['http://x/ns/shop/sa/default'], expect.any(String)],
  ['not a workload', {}, ['spiffe://td/ns/shop/sa/a/b'], expect.any(String)],
  ['two identities, one of which matches', {}, [of('elsewhere'), of('shop')], expect.stringContaining('exactly one')],
])('Authorization rejects an identity that does not match the node: %s', (_, metadata, identities, reason) => {
  expect(authorize(node(metadata), identities)).toEqual({ reason });
});

// See issue 33, item 5: the identity was compared with the namespace in the ID, but the node was served for the namespace in its metadata.
test.each([
  ['a number', 123],
  ['a boolean', true],
  ['false', false],
  ['a list', ['bank']],
  ['an object', { toString: 'bank' }],
  ['padded', ' bank'],
  ['in upper case', 'BANK'],
  ['in full-width letters', '\uff42ank'],
  ['a domain', 'bank.svc'],
])(
  'Authorization rejects a NAMESPACE that is %s, and does not fall back to the namespace in the ID',
  (_, NAMESPACE) => {
    const claimedNode = node({ NAMESPACE });
    expect(authorize(claimedNode, [of('shop')])).toEqual({
      reason: expect.stringMatching(/^metadata NAMESPACE must be /),
    });
    expect(parseNode(claimedNode)).toEqual(E.left(expect.stringContaining('metadata NAMESPACE must be ')));
  },
);

test.each(['SERVICE_ACCOUNT', 'CLUSTER_ID', 'NETWORK'])(
  'Authorization and node parsing reject a %s that is not a string',
  (key) => {
    for (const value of [123, true, ['cart'], { cart: 1 }]) {
      const claimedNode = node({ [key]: value });
      const reason = `metadata ${key} must be a string, got ${JSON.stringify(value)}`;
      expect(authorize(claimedNode, [of('shop', '123')])).toEqual({ reason });
      expect(parseNode(claimedNode)).toEqual(E.left(expect.stringContaining(reason)));
    }
  },
);

test("the xDS server serves a client only as a node in the namespace of the client's identity", () => {
  const values = [
    'bank',
    'shop',
    '',
    'Bank',
    ' bank',
    'bank ',
    'bank\0',
    'b\u0430nk',
    1,
    true,
    null,
    undefined,
    [],
    {},
  ];
  const domains = ['bank.svc', 'shop.svc', 'Bank.svc', '', '.bank', 'bank', 'shop', '1.svc', 'true'];
  const claimedNode = values.flatMap((NAMESPACE) =>
    [...values, 'default'].flatMap((SERVICE_ACCOUNT) =>
      domains.map((domain) => ({
        ...node({ NAMESPACE, SERVICE_ACCOUNT }),
        id: `sidecar~10.0.0.1~app~${domain}`,
      })),
    ),
  );
  const servedNodes = claimedNode
    .filter((one) => 'identity' in authorize(one, [of('shop')]))
    .map((one) => parseNode(one));
  const names = servedNodes.map((one) => E.isRight(one) && `${one.right.configNamespace}/${one.right.serviceAccount}`);
  expect(new Set(names)).toEqual(new Set(['shop/', 'shop/default']));
});
