import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { buildEndpoints } from './build.ts';

const { context } = givenMesh(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: reviews }
spec:
  hosts: [reviews.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }, { number: 81, name: admin, protocol: HTTP }]
  endpoints:
    - { address: 10.0.0.1, ports: { http: 8080, admin: 9090 }, labels: { version: v1 } }
    - { address: 10.0.0.2, labels: { version: v2, security.istio.io/tlsMode: istio } }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: reviews }
spec: { host: reviews.test, subsets: [{ name: v1, labels: { version: v1 } }] }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: socket }
spec:
  hosts: [socket.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: "unix:///run/socket.sock" }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: parted }
spec:
  hosts: [parted.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.3 }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: parted-as-well }
spec:
  hosts: [parted.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 9000, name: tcp, protocol: TCP }]
  endpoints: [{ address: 10.0.0.4 }]
`);

function addressesOf(cluster: string, push = context, shape = givenShape()): string[] {
  const [resource] = buildEndpoints(shape, push, [cluster]);
  expect(resource!.name).toBe(cluster);
  const { endpoints } = resource!.message as ClusterLoadAssignment;
  return endpoints
    .flatMap((locality) => locality.lbEndpoints)
    .map(({ hostIdentifier }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      if (address?.case === 'pipe') return address.value.path;
      return address?.case === 'socketAddress' ? `${address.value.address}:${address.value.portSpecifier.value}` : '?';
    });
}

describe('endpoints of a cluster', () => {
  it('endpoints match the service port by name, and can have different port numbers', () => {
    expect(addressesOf('outbound|80||reviews.test')).toEqual(['10.0.0.1:8080', '10.0.0.2:80']);
    expect(addressesOf('outbound|81||reviews.test')).toContain('10.0.0.1:9090');
  });

  it('endpoints are taken from the object that defines the port if several objects define the host', () => {
    expect(addressesOf('outbound|80||parted.test')).toEqual(['10.0.0.3:80']);
    expect(addressesOf('outbound|9000||parted.test')).toEqual(['10.0.0.4:9000']);
    expect(addressesOf('outbound|99||parted.test')).toEqual([]);
  });

  it('a Unix socket is an endpoint of its service', () => {
    expect(addressesOf('outbound|80||socket.test')).toEqual(['/run/socket.sock']);
  });

  it('a subset contains endpoints with its labels', () => {
    expect(addressesOf('outbound|80|v1|reviews.test')).toEqual(['10.0.0.1:8080']);
  });

  it('a cluster whose name is in SNI format contains only endpoints that accept mutual TLS', () => {
    expect(addressesOf('outbound_.80_._.reviews.test')).toEqual(['10.0.0.2:80']);
  });

  it.each(['outbound|80||nobody.test', 'outbound|99||reviews.test', 'outbound|80|v9|reviews.test', 'nonsense'])(
    'the cluster %s has an empty assignment',
    (cluster) => {
      expect(addressesOf(cluster)).toEqual([]);
    },
  );
});

describe('endpoints in another network', () => {
  const rule = (tls: string, extraSettings = ''): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: far }
spec: { host: far.test, subsets: [{ name: v1, labels: {} }], trafficPolicy: { tls: { ${tls} }${extraSettings} } }
---`;
  const mesh = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: far }
spec:
  hosts: [far.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints:
    - { address: 10.0.0.1, network: n1, labels: { security.istio.io/tlsMode: istio } }
    - { address: 10.0.0.2, network: n2, labels: { security.istio.io/tlsMode: istio } }
---
apiVersion: v1
kind: Service
metadata: { name: east-west, namespace: istio-system, labels: { topology.istio.io/network: n2 } }
spec: { type: LoadBalancer, clusterIP: 10.1.0.9, ports: [{ name: tls, port: 15443 }] }
status: { loadBalancer: { ingress: [{ ip: 9.9.9.9 }] } }
---`;
  const bothAddresses = ['10.0.0.1:80', '9.9.9.9:15443'];
  const nearAddresses = ['10.0.0.1:80'];

  it.each<[string, string, string, string[]]>([
    ['without settings', '', '', bothAddresses],
    ['a rule requires mutual TLS', rule('mode: ISTIO_MUTUAL'), '', bothAddresses],
    ['a rule disables TLS', rule('mode: DISABLE'), '', nearAddresses],
    ['a rule requires other TLS', rule('mode: SIMPLE'), '', nearAddresses],
    [
      'a rule disables TLS for the port',
      rule('mode: ISTIO_MUTUAL', ', portLevelSettings: [{ port: { number: 80 }, tls: { mode: DISABLE } }]'),
      '',
      nearAddresses,
    ],
    ['the mesh disables auto mTLS', '', 'enableAutoMtls: false', nearAddresses],
    [
      'the mesh disables auto mTLS, but a rule requires it',
      rule('mode: ISTIO_MUTUAL'),
      'enableAutoMtls: false',
      bothAddresses,
    ],
  ])('clients reach remote endpoints through a gateway only with mutual TLS: %s', (_, rules, meshConfig, expected) => {
    const { context } = givenMesh(mesh + rules, { meshConfig });
    const client = { ...givenShape(), network: 'n1' };
    expect(addressesOf('outbound|80||far.test', context, client)).toEqual(expected);
    expect(addressesOf('outbound_.80_._.far.test', context, client)).toEqual(bothAddresses);
  });

  it.each<[string, string, string[]]>([
    ['through the gateway of its network', 'n1', ['10.0.0.1:80', '9.9.9.9:15443']],
    ['by no client in its own network', 'n2', ['10.0.0.1:80']],
    ['by no client without a network', '', ['10.0.0.1:80']],
  ])('a workload without an address is reached %s', (_, network, expected) => {
    const entry = (name: string) => `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: ${name}, labels: { app: far, security.istio.io/tlsMode: istio } }
spec: { network: n2, weight: 3 }
---`;
    const selectorMesh = mesh
      .replace('  endpoints:', '  workloadSelector: { labels: { app: far } }')
      .replaceAll(/ {4}- .*\n/g, '');
    const localEntry = `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: near, labels: { app: far, security.istio.io/tlsMode: istio } }
spec: { address: 10.0.0.1, network: n1 }
---`;
    const { context } = givenMesh(selectorMesh + localEntry + entry('a') + entry('b'));
    const client = { ...givenShape(), network };
    expect(addressesOf('outbound|80||far.test', context, client)).toEqual(expected);
  });
});
