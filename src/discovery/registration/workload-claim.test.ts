import { describe, expect, it } from 'vitest';
import type { NodeIdentity } from '../xds/resource-source.ts';
import {
  claimOf,
  entryName,
  type RegistrationRejection,
  requestsRegistration,
  type WorkloadClaim,
} from './workload-claim.ts';

const identity = 'spiffe://cluster.local/ns/shop/sa/vm';

function node(
  { ip = '10.0.0.1', ...reportedMetadata }: Record<string, unknown> = {},
  shownIdentity: string | null = identity,
): NodeIdentity {
  return {
    id: `sidecar~${ip}~vm.shop~shop.svc.cluster.local`,
    cluster: 'vm',
    metadata: { NAMESPACE: 'shop', AUTO_REGISTER_GROUP: 'vm', ...reportedMetadata },
    ...(shownIdentity !== null && { verifiedIdentity: shownIdentity }),
  };
}

const claim = (of: NodeIdentity): WorkloadClaim => claimOf(of) as WorkloadClaim;
const code = (of: NodeIdentity): string | undefined => (claimOf(of) as Partial<RegistrationRejection>).code;

it('a node without a group does not request registration', () => {
  const requests = [undefined, null, '', 'vm', 7, ['vm']].map((AUTO_REGISTER_GROUP) =>
    requestsRegistration(node({ AUTO_REGISTER_GROUP })),
  );
  expect(requests).toEqual([false, false, false, true, true, true]);
});

it('an entry name consists of group, address and network', () => {
  expect(claim(node()).entry).toBe('shop/vm-10.0.0.1');
  expect(claim(node({ NETWORK: 'lab' })).name).toBe('vm-10.0.0.1-lab');
  expect(claim(node({ ip: '2001:DB8::1' })).name).toBe('vm-2001-db8--1');
});

it('a long entry name is shortened at the beginning and remains valid', () => {
  const name = entryName(`a${'-x'.repeat(120)}`, '2001:db8::1', 'network');
  expect(name.length).toBeLessThanOrEqual(253);
  expect(name).toMatch(/^[a-z0-9].*-2001-db8--1-network$/);
  expect(code(node({ AUTO_REGISTER_GROUP: 'a'.repeat(253) }))).toBeUndefined();
});

describe('a client without a verified identity in the namespace', () => {
  it.each([
    ['no identity', null],
    ['an identity of another namespace', 'spiffe://cluster.local/ns/other/sa/vm'],
    ['an identity of a namespace with a similar name', 'spiffe://cluster.local/ns/shop2/sa/vm'],
    ['a SPIFFE ID that is not that of a workload', 'spiffe://cluster.local/shop/vm'],
    ['a text that is not a SPIFFE ID', 'shop'],
  ])('is rejected with %s', (_, shownIdentity) => {
    expect(code(node({}, shownIdentity))).toBe('PERMISSION_DENIED');
  });

  it('is rejected even if identity checks are disabled, unless its only identity is in the namespace', () => {
    const unchecked = { ...node({}, null), identities: [identity] };
    expect(claim(unchecked).serviceAccount).toBe('vm');
    expect(code({ ...unchecked, identities: ['spiffe://td/ns/other/sa/a'] })).toBe('PERMISSION_DENIED');
    // A client with identities of two workloads has the identity of neither.
    expect(code({ ...unchecked, identities: ['spiffe://td/ns/other/sa/a', identity] })).toBe('PERMISSION_DENIED');
  });

  it('does not get the service account in its node metadata', () => {
    expect(claim(node({ SERVICE_ACCOUNT: 'admin' })).serviceAccount).toBe('vm');
  });
});

describe('an invalid claim', () => {
  it.each([
    ...['0.0.0.0', '127.0.0.1', '127.8.8.8', '169.254.169.254', '224.0.0.1', '255.255.255.255', '::', '::1', 'fe80::1'],
    ...['ff02::1', '::ffff:127.0.0.1', '::ffff:169.254.169.254', 'fe80::1%eth0', '2001:db8::%x'],
    // NAT64 addresses of loopback, cloud metadata addresses, and other notations of them (issue 33, item 15).
    ...['64:ff9b::7f00:1', '64:ff9b:1:7f00:0:100::', 'fd00:ec2::254', '::127.0.0.1', '2002:7f00:1::1', 'fec0::1'],
    ...['2001:0:7f00:1::', '2001:0:808:808::80ff:fffe', '::ffff:0:7f00:1', '100.100.100.200', '168.63.129.16'],
  ])('is rejected for the address %s', (ip) => {
    expect(code(node({ ip }))).toBe('INVALID_ARGUMENT');
  });

  it.each([['', 'vm/other', '../vm', 'VM', 'vm.', 'a'.repeat(254), 7, ['vm'], { a: 'b' }, true].slice(1)].flat(1))(
    'is rejected for the group %j',
    (AUTO_REGISTER_GROUP) => {
      expect(code(node({ AUTO_REGISTER_GROUP }))).toBe('INVALID_ARGUMENT');
    },
  );

  it.each([
    ['an invalid network name', { NETWORK: 'a_b' }],
    ['a network name with a path', { NETWORK: '../../secrets' }],
    ['labels above the size limit', { LABELS: { a: 'x'.repeat(20_000) } }],
    ['labels of a wrong type', { LABELS: ['a'] }],
  ])('is rejected for %s', (_, reportedMetadata) => {
    expect(code(node(reportedMetadata))).toBe('INVALID_ARGUMENT');
  });
});

it('health is expected from a workload only if its agent has a readiness probe', () => {
  expect(claim(node({ PROXY_CONFIG: { readinessProbe: { tcpSocket: { port: 80 } } } })).isProbed).toBe(true);
  expect([undefined, null, 'readinessProbe', {}].map((PROXY_CONFIG) => claim(node({ PROXY_CONFIG })).isProbed)).toEqual(
    [false, false, false, false],
  );
});
