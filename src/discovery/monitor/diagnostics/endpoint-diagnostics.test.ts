import { expect, it } from 'vitest';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { diagnosticsOf } from './push-status.ts';

const gateway = `
apiVersion: v1
kind: Service
metadata: { name: ew, namespace: istio-system, labels: { topology.istio.io/network: n2 } }
spec: { type: LoadBalancer, clusterIP: 10.99.0.1, ports: [{ name: tls, port: 15443 }] }
status: { loadBalancer: { ingress: [{ ip: 127.0.0.99 }] } }
---`;
const entry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.9, network: n2, labels: { security.istio.io/tlsMode: istio } }, { address: 10.0.0.1, network: n1 }]
---`;
const rule = (host: string, mode: string, namespace = 'shop') => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: ${namespace} }
spec: { host: "${host}", trafficPolicy: { tls: { mode: ${mode} } } }
---`;

function messagesOf(metric: string, yaml: string, network = 'n1', addresses = '10.9.0.1'): string[] {
  const plane = givenPlane(yaml);
  plane.connect(
    {
      id: `sidecar~${addresses.split(',')[0]}~a.shop~shop.svc.cluster.local`,
      cluster: '',
      metadata: { NAMESPACE: 'shop', NETWORK: network, INSTANCE_IPS: addresses },
    },
    [],
  );
  const status = diagnosticsOf(plane.state, plane.resources.nodes);
  return Object.entries(status[metric]!).map(([key, { message }]) => `${key}: ${message}`);
}
const acrossNetworks = (yaml: string, network?: string) => messagesOf('pilot_plaintext_across_networks', yaml, network);

it('endpoint diagnostics report endpoints of another network that are withheld because a rule disables TLS', () => {
  expect(acrossNetworks(entry + gateway + rule('web.test', 'DISABLE'))).toEqual([
    expect.stringMatching(
      /^outbound\|80\|\|web.test shop: endpoints 10.0.0.9:80 of network n2 .* clients of namespace shop .*\(DestinationRule\/shop\/web\)$/,
    ),
  ]);
});

it('endpoint diagnostics report withheld endpoints in a client namespace whose wildcard rule originates other TLS', () => {
  expect(acrossNetworks(entry + gateway + rule('*.test', 'SIMPLE', 'other'))).toEqual([
    expect.stringContaining('clients of namespace other'),
  ]);
});

it.each([
  ['clients use mutual TLS', entry + gateway + rule('web.test', 'ISTIO_MUTUAL'), 'n1'],
  ['the network has no gateway', entry + rule('web.test', 'DISABLE'), 'n1'],
  ['no connected proxy is in a different network', entry + gateway + rule('web.test', 'DISABLE'), 'n2'],
])('endpoint diagnostics do not report endpoints of another network if %s', (_, yaml, network) => {
  expect(acrossNetworks(yaml, network)).toEqual([]);
});

it('endpoint diagnostics report host names in endpoints that require IP addresses', () => {
  const vm = `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: vm1, namespace: shop }
spec: { address: vm.internal, labels: { app: vm } }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: vm, namespace: shop }
spec: { hosts: [vm.test], resolution: STATIC, ports: [{ number: 80, name: http, protocol: HTTP }], workloadSelector: { labels: { app: vm } } }
---`;
  expect(messagesOf('pilot_host_name_endpoints', vm)).toEqual([
    expect.stringMatching(/^shop\/vm.test: .*vm.internal:80/),
  ]);
  expect(messagesOf('pilot_host_name_endpoints', vm.replace('STATIC', 'DNS'))).toEqual([]);
});

it('endpoint diagnostics report workloads without an address or a known gateway for their network', () => {
  const farEntry = entry.replace('{ address: 10.0.0.9, network: n2,', '{ network: n2,');
  expect(messagesOf('pilot_endpoints_without_address', farEntry)).toEqual([
    expect.stringMatching(/^shop\/web.test: .*an endpoint of network n2/),
  ]);
  expect(messagesOf('pilot_endpoints_without_address', farEntry + gateway)).toEqual([]);
  expect(messagesOf('pilot_endpoints_without_address', farEntry.replace('STATIC', 'DNS') + gateway)).toHaveLength(1);
});

it.each([
  ['127.0.0.1:80', 'fd00::9', ['[::1]:80']],
  ['0.0.0.0:80', 'fd00::9', ['[fd00::9]:80']],
  ['[::1]:80', '10.9.0.1', ['127.0.0.1:80']],
  ['127.0.0.1:80', '10.9.0.1', []],
  ['[::1]:80', '10.9.0.1,fd00::9', []],
  ['unix:///run/app.sock', 'fd00::9', []],
])(
  'endpoint diagnostics report for defaultEndpoint %s of a workload with addresses %s the replacements %j',
  (endpoint, addresses, usedAddress) => {
    const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: own, namespace: shop }
spec: { ingress: [{ port: { number: 9080, name: http, protocol: HTTP }, defaultEndpoint: "${endpoint}" }] }`;
    const reports = messagesOf('pilot_default_endpoints_replaced', sidecar, 'n1', addresses);
    expect(reports).toEqual(usedAddress.map((one) => expect.stringContaining(`${one} is used instead of ${endpoint}`)));
  },
);

it('endpoint diagnostics name the objects whose status contains an endpoint warning', () => {
  const plane = givenPlane(entry.replace('address: 10.0.0.1, ', ''));
  const status = diagnosticsOf(plane.state, plane.resources.nodes);
  expect(Object.values(status.pilot_endpoints_without_address!).flatMap(({ objects }) => objects)).toEqual([
    'ServiceEntry/shop/web',
  ]);
});
