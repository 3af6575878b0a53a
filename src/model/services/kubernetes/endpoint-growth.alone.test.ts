/** Counts the calls for a change of one slice of a service with many endpoints. */
import { expect, it } from 'vitest';
import { type CountedWork, countedWork } from '../../../../test/harness/counted-work.ts';
import type { Config } from '../../config/config.ts';
import { EndpointShards } from '../endpoint-shards.ts';
import type { ConfigObjectChange } from '../registry-delta.ts';
import { defaultRegistryOptions } from '../service-registry.ts';
import { KubernetesServices } from './kubernetes-services.ts';

const metadata = { namespace: 'shop', labels: {}, annotations: {}, resourceVersion: '1', creationTimestamp: 0 };
const ports = Array.from({ length: 50 }, (_, index) => ({ name: `p${index}`, port: 1_000 + index, protocol: 'TCP' }));

const change = (kind: string, name: string, spec: unknown, labels = {}): ConfigObjectChange<Config> => ({
  key: { kind, namespace: 'shop', name },
  current: { ...metadata, kind, apiVersion: 'v1', name, labels, spec },
});
const service = change('Service', 'web', {
  spec: {
    ...{ type: 'ClusterIP', clusterIP: '10.9.0.1', clusterIPs: [], ports, selector: { app: 'web' }, externalName: '' },
    ...{ externalIPs: [], internalTrafficPolicy: 'Cluster', publishNotReadyAddresses: false },
  },
  status: { loadBalancer: { ingress: [] } },
});
const slice = (index: number, ready: boolean): ConfigObjectChange<Config> => {
  const endpoints = Array.from({ length: 20 }, (_, endpointIndex) => ({
    ...{ addresses: [`10.${index}.0.${endpointIndex}`], conditions: { ready } },
  }));
  const labels = { 'kubernetes.io/service-name': 'web' };
  return change('EndpointSlice', `web-${index}`, { addressType: 'IPv4', ports, endpoints }, labels);
};
const callsOf = (work: CountedWork, name: string): number =>
  [...work].reduce((sum, [call, count]) => sum + (call.startsWith(`${name} `) ? count : 0), 0);

it('a changed slice causes no endpoint lookup by ID if the order is unchanged', () => {
  const services = new KubernetesServices(defaultRegistryOptions);
  const shards = new EndpointShards();
  const apply = (...changes: readonly ConfigObjectChange<Config>[]): void => {
    for (const one of services.apply(changes).services) {
      shards.update({ provider: 'Kubernetes', cluster: 'c1' }, one, one.endpoints);
    }
  };
  apply(service, ...Array.from({ length: 10 }, (_, index) => slice(index, true)));
  const name = { hostname: 'web.shop.svc.cluster.local', namespace: 'shop' };
  expect(shards.index.get(name.hostname)?.get(name.namespace)).toHaveLength(10 * 20 * ports.length);
  const work = countedWork(() => apply(slice(3, false)));
  expect(callsOf(work, 'sameEndpoint')).toBeGreaterThan(0);
  expect(callsOf(work, 'endpointId')).toBe(0);
});

it("an address in many slices with different ports costs each slice only the slice's own ports", () => {
  const services = new KubernetesServices(defaultRegistryOptions);
  const slices = Array.from({ length: 20 }, (_, index) => {
    const ownPorts = ports.map(({ name, port }) => ({ name: `${name}-${index}`, port, protocol: 'TCP' }));
    const endpoints = [{ addresses: ['10.0.0.1'], conditions: { ready: true } }];
    const labels = { 'kubernetes.io/service-name': 'web' };
    return change('EndpointSlice', `web-${index}`, { addressType: 'IPv4', ports: ownPorts, endpoints }, labels);
  });
  let endpointCount = 0;
  const work = countedWork(() => {
    endpointCount = services.apply([service, ...slices]).services[0]!.endpoints.length;
  });
  expect(endpointCount).toBe(20 * ports.length);
  // Called once for the slice, and once for the complete list.
  expect(callsOf(work, 'endpointId')).toBeLessThanOrEqual(2 * 20 * ports.length);
});
