import { expect, test } from 'vitest';
import { forwardedCertificate } from '../../xds/access/forwarded-certificate.ts';
import { callerNamespace } from './known-caller.ts';

test.each([
  ['10.0.0.1', 'shop'],
  ['::ffff:10.0.0.1', 'shop'],
  ['fd00::5', 'shop'],
  ['11.0.0.1', undefined],
  ['fd01::5', undefined],
  [undefined, undefined],
])(
  'callerNamespace returns, for a client certificate that a gateway at %s forwards, %s',
  async (remoteAddress, namespace) => {
    const gateways = forwardedCertificate(['10.0.0.0/8', 'fd00::/16'], () => 'td');
    const request = {
      ...{ method: 'GET', path: '/', query: new URLSearchParams(), isLocal: false },
      headers: { 'x-forwarded-client-cert': 'URI=spiffe://td/ns/shop/sa/cart' },
      ...{ readBody: async () => '', peer: { remoteAddress } },
    };
    expect(await callerNamespace([gateways])(request)).toBe(namespace);
  },
);
