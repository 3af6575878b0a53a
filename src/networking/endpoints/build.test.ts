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

function addressesOf(cluster: string): string[] {
  const [resource] = buildEndpoints(givenShape(), context, [cluster]);
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
  it('are those of the port, by its name, each on its own number', () => {
    expect(addressesOf('outbound|80||reviews.test')).toEqual(['10.0.0.1:8080', '10.0.0.2:80']);
    expect(addressesOf('outbound|81||reviews.test')).toContain('10.0.0.1:9090');
  });

  it('are those of the object that has the port, where several have the host', () => {
    expect(addressesOf('outbound|80||parted.test')).toEqual(['10.0.0.3:80']);
    expect(addressesOf('outbound|9000||parted.test')).toEqual(['10.0.0.4:9000']);
    expect(addressesOf('outbound|99||parted.test')).toEqual([]);
  });

  it('may be a unix socket', () => {
    expect(addressesOf('outbound|80||socket.test')).toEqual(['/run/socket.sock']);
  });

  it('are those with the labels of the subset', () => {
    expect(addressesOf('outbound|80|v1|reviews.test')).toEqual(['10.0.0.1:8080']);
  });

  it('are those that take mutual TLS behind a cluster in the SNI form', () => {
    expect(addressesOf('outbound_.80_._.reviews.test')).toEqual(['10.0.0.2:80']);
  });

  it.each(['outbound|80||nobody.test', 'outbound|99||reviews.test', 'outbound|80|v9|reviews.test', 'nonsense'])(
    'of %s are none, and that is an answer',
    (cluster) => {
      expect(addressesOf(cluster)).toEqual([]);
    },
  );
});
