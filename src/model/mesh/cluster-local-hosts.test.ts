import { expect, it } from 'vitest';
import { givenMeshConfig } from '../../../test/fixtures/given-mesh.ts';
import { ClusterLocalHosts } from './cluster-local-hosts.ts';

const hosts = (yaml: string): ClusterLocalHosts => new ClusterLocalHosts(givenMeshConfig(yaml), 'cluster.local');

it("ClusterLocalHosts keeps clients of a cluster's own services and the control plane within the cluster", () => {
  const local = hosts('');
  expect(local.has('kube-dns.kube-system.svc.cluster.local')).toBe(true);
  expect(local.has('kubernetes.default.svc.cluster.local')).toBe(true);
  expect(local.has('istiod.istio-system.svc')).toBe(true);
  expect(local.has('istiod.istio-system.svc.cluster.local')).toBe(true);
  expect(local.has('web.shop.svc.cluster.local')).toBe(false);
});

it('ClusterLocalHosts applies the mesh setting with the most specific host', () => {
  const local = hosts(`serviceSettings:
- {settings: {clusterLocal: true}, hosts: ["*.shop.svc.cluster.local"]}
- {settings: {clusterLocal: false}, hosts: [web.shop.svc.cluster.local, "*.kube-system.svc.cluster.local"]}`);
  expect(local.has('cart.shop.svc.cluster.local')).toBe(true);
  expect(local.has('web.shop.svc.cluster.local')).toBe(false);
  expect(local.has('kube-dns.kube-system.svc.cluster.local')).toBe(false);
});
