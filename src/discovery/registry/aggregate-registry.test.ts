import { describe, expect, it } from 'vitest';
import { givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { EndpointShards } from '../../model/services/endpoint-shards.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { AggregateRegistry } from './aggregate-registry.ts';
import { MemoryRegistry } from './memory-registry.ts';
import { RegistryUpdates } from './registry-updates.ts';

const [web] = givenMesh(`apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, clusterIP: 10.9.0.1, externalIPs: [7.0.0.1], ports: [{name: http, port: 80}]}
`).registry.services;

const inCluster = (id: string, overrides: Partial<Service> = {}): Service => ({
  ...web!,
  clusterVIPs: { [id]: [`10.9.0.${id.length}`] },
  attributes: { type: 'LoadBalancer', externalAddresses: { [id]: [`7.0.0.${id.length}`] } },
  ...overrides,
});

function createAggregate() {
  const shards = new EndpointShards();
  const updates: RegistryUpdates = new RegistryUpdates(shards, () => aggregate);
  const aggregate: AggregateRegistry = new AggregateRegistry('home', updates);
  const registryOf = (provider: string, cluster: string, ...services: Service[]): MemoryRegistry => {
    const registry = new MemoryRegistry({ provider, cluster }, updates);
    for (const service of services) registry.putService(service);
    aggregate.addRegistry(registry);
    return registry;
  };
  return { shards, updates, aggregate, registryOf };
}

describe('an aggregate of registries', () => {
  it('queries Kubernetes registries first, starting with its own cluster, then others in the order in which they were added', () => {
    const { aggregate, registryOf } = createAggregate();
    registryOf('External', 'home');
    registryOf('Kubernetes', 'away');
    registryOf('Mock', 'm');
    registryOf('Kubernetes', 'home');
    expect(aggregate.registries.map(({ provider, clusterId }) => `${provider}/${clusterId}`)).toEqual([
      'Kubernetes/home',
      'Kubernetes/away',
      'External/home',
      'Mock/m',
    ]);
  });

  it('merges a host of several clusters, with the addresses in each cluster', () => {
    const { aggregate, registryOf } = createAggregate();
    registryOf('Kubernetes', 'far', inCluster('far', { ports: [], serviceAccounts: ['b'] }));
    registryOf('Kubernetes', 'home', inCluster('home', { serviceAccounts: ['a'] }));
    const services = aggregate.services();
    expect(services).toHaveLength(1);
    expect(services[0]).toMatchObject({
      ports: [{ number: 80 }],
      serviceAccounts: ['a', 'b'],
      clusterVIPs: { home: ['10.9.0.4'], far: ['10.9.0.3'] },
      attributes: { externalAddresses: { home: ['7.0.0.4'], far: ['7.0.0.3'] } },
    });
    expect(aggregate.getService(web!.hostname)).toEqual(services[0]);
  });

  it('lists a host of several other registries separately, and returns the first one when queried by hostname', () => {
    const { aggregate, registryOf } = createAggregate();
    registryOf('External', 'home', { ...web!, registry: 'External', labels: { from: 'first' } });
    registryOf('Mock', 'm', { ...web!, registry: 'Mock' });
    expect(aggregate.services()).toHaveLength(2);
    expect(aggregate.getService(web!.hostname)?.labels).toEqual({ from: 'first' });
  });

  it('looks up a proxy only in the cluster that the proxy reports', () => {
    const { aggregate, registryOf } = createAggregate();
    const endpoint: Endpoint = {
      ...{ address: '10.0.0.1', port: 8080, servicePortName: 'http', labels: {}, serviceAccount: '', network: '' },
      ...{ locality: '', clusterId: 'away', weight: 0, tlsMode: 'disabled', namespace: 'shop', workloadName: '' },
      health: 'healthy',
    };
    registryOf('Kubernetes', 'home');
    registryOf('Kubernetes', 'away', web!).putEndpoints(web!, [endpoint]);
    const from = (clusterId: string): number =>
      aggregate.getProxyServiceTargets({ ...givenProxy({ ip: '10.0.0.1', namespace: 'shop' }), clusterId }).length;
    expect([from('away'), from('home'), from('')]).toEqual([1, 0, 1]);
  });

  it('rejects a second registry with the same provider and cluster', () => {
    const { registryOf } = createAggregate();
    registryOf('Kubernetes', 'home');
    expect(() => registryOf('Kubernetes', 'home')).toThrow('already');
  });

  it('stops a removed registry and removes its endpoints', () => {
    const { aggregate, registryOf, updates } = createAggregate();
    const remoteRegistry = registryOf('Kubernetes', 'away', web!);
    aggregate.run();
    expect(aggregate.hasSynced()).toBe(true);
    updates.takePendingPush();
    aggregate.removeRegistry('Kubernetes', 'away');
    expect([updates.takePendingPush().forced, aggregate.services(), remoteRegistry.hasSynced()]).toEqual([
      true,
      [],
      false,
    ]);
  });
});
