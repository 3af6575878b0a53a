import { describe, expect, it } from 'vitest';
import { unboundedMemory } from '../../../test/fixtures/given-memory.ts';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { buildClusters } from './build.ts';

const yaml = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a }
spec:
  hosts: [a.test]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.1 }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: b }
spec:
  hosts: [b.test]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{ number: 80, name: http, protocol: HTTP }]
`;
const { context } = givenMesh(yaml);

const cache = unboundedMemory();

function first(node: GivenNode, host = 'a.test', push = context): unknown {
  const clusters = buildClusters(givenShape(node), push, cache);
  return clusters.find((cluster) => cluster.name === `outbound|80||${host}`);
}

describe('shared outbound clusters', () => {
  it('proxies of the same shape share cluster objects, even in different namespaces', () => {
    const euCluster = first({ ip: '10.0.0.8', labels: { app: 'x', 'topology.kubernetes.io/region': 'eu' } });
    const usCluster = first({ ip: '10.0.0.9', labels: { app: 'y', 'topology.kubernetes.io/region': 'us' } });
    expect(euCluster).toBeDefined();
    expect(usCluster).toBe(euCluster);
  });

  it('proxies share no clusters if their type, address family or push context differs', () => {
    const sidecar = first({});
    expect(first({ type: 'router' })).not.toBe(sidecar);
    expect(first({ ip: '2001:db8::1' })).not.toBe(sidecar);
    expect(first({}, 'a.test', givenMesh(yaml).context)).not.toBe(sidecar);
  });

  it('clusters that contain endpoints in locality order are shared only within the locality', () => {
    const euCluster = first({ labels: { 'topology.kubernetes.io/region': 'eu' } }, 'b.test');
    const usCluster = first({ labels: { 'topology.kubernetes.io/region': 'us' } }, 'b.test');
    expect(euCluster).toBeDefined();
    expect(usCluster).not.toBe(euCluster);
  });
});
