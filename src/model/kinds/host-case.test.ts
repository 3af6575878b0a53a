/** Tests that host names are case-insensitive (RFC 4343). */

import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { codedField } from '../../../test/fixtures/coded-error.ts';
import { readConfigFile } from '../config/config-file.ts';

function read(kind: string, spec: object, group = 'networking.istio.io'): { spec: unknown; errors: string[] } {
  const text = stringify({ apiVersion: `${group}/v1`, kind, metadata: { name: 'a', namespace: 'shop' }, spec });
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  const errors = problems.filter(({ severity }) => severity === 'error');
  return { spec: configs[0]?.spec, errors: errors.map(codedField) };
}

const to = { destination: { host: 'Cart.Test', port: { number: 80 } } };
const lowerCaseRoute = { destination: { host: 'cart.test', port: { number: 80 } } };
const port = { number: 80, name: 'a', protocol: 'HTTP' };

test.each<[string, object, object]>([
  [
    'VirtualService',
    { hosts: ['Shop.Test', '*.Wild.test', '2001:DB8::1'], http: [{ route: [to], mirrors: [to] }] },
    {
      hosts: ['shop.test', '*.wild.test', '2001:db8::1'],
      http: [{ route: [lowerCaseRoute], mirrors: [lowerCaseRoute] }],
    },
  ],
  [
    'VirtualService',
    { hosts: ['a.test'], http: [{ route: [to], mirror: to.destination }], tcp: [{ route: [to] }] },
    { http: [{ mirror: lowerCaseRoute.destination }], tcp: [{ route: [lowerCaseRoute] }] },
  ],
  [
    'VirtualService',
    { hosts: ['*.TEST'], tls: [{ match: [{ sniHosts: ['A.test'] }], route: [to] }] },
    { hosts: ['*.test'], tls: [{ match: [{ sniHosts: ['a.test'] }], route: [lowerCaseRoute] }] },
  ],
  [
    'Gateway',
    { selector: {}, servers: [{ port, hosts: ['Shop.Test', './A.test', '*/B.test', 'Shop/C.test', '*'] }] },
    { servers: [{ hosts: ['shop.test', './a.test', '*/b.test', 'Shop/c.test', '*'] }] },
  ],
  ['ServiceEntry', { hosts: ['Shop.Test'], ports: [port] }, { hosts: ['shop.test'] }],
  ['DestinationRule', { host: '*.Shop.Test' }, { host: '*.shop.test' }],
  [
    'Sidecar',
    {
      egress: [{ hosts: ['*/Shop.Test', '~/*', 'Shop/*'] }],
      outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: to.destination },
    },
    {
      egress: [{ hosts: ['*/shop.test', '~/*', 'Shop/*'] }],
      outboundTrafficPolicy: { egressProxy: lowerCaseRoute.destination },
    },
  ],
])('hosts of a %s are converted to lower case', (kind, spec, converted) => {
  const { spec: decoded, errors } = read(kind, spec);
  expect(errors).toEqual([]);
  expect(decoded).toMatchObject(converted);
});

test.each<[string, object, string]>([
  [
    'VirtualService',
    { hosts: ['a.test', 'A.test'], http: [{ route: [to] }] },
    'spec.hosts[1]: FIELD_DUPLICATE got "a.test"',
  ],
  ['ServiceEntry', { hosts: ['a.test', 'A.TEST'], ports: [port] }, 'spec.hosts[1]: FIELD_DUPLICATE got "a.test"'],
])('a host in two spellings is rejected as a duplicate in a %s', (kind, spec, message) => {
  expect(read(kind, spec).errors.join('\n')).toContain(message);
});

test('an invalid host is reported as written', () => {
  expect(read('ServiceEntry', { hosts: ['Shop_.Test!'], ports: [port] }).errors.join()).toContain('"Shop_.Test!"');
});

test('the Gateway API accepts only lower-case hosts, like its CRDs', () => {
  const spec = {
    gatewayClassName: 'istio',
    listeners: [{ name: 'a', port: 80, protocol: 'HTTP', hostname: 'A.test' }],
  };
  expect(read('Gateway', spec, 'gateway.networking.k8s.io').errors.join()).toContain(
    'spec.listeners[0].hostname: FIELD_FORMAT_INVALID got "A.test"',
  );
  expect(read('HTTPRoute', { hostnames: ['A.test'] }, 'gateway.networking.k8s.io').errors.join()).toContain(
    'spec.hostnames[0]: FIELD_FORMAT_INVALID got "A.test"',
  );
});
