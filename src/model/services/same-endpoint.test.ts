import { describe, expect, test } from 'vitest';
import { sameEndpoint } from './same-endpoint.ts';
import type { Endpoint } from './service.ts';
import { sameWorkload, type Workload } from './workload.ts';

/** Has every field: a new field causes a compile error until it is added here, and then a test failure until it is compared. */
const endpoint: Required<Endpoint> = {
  address: '10.0.0.1',
  port: 8080,
  servicePortName: 'http',
  labels: { app: 'shop' },
  serviceAccount: 'spiffe://cluster.local/ns/shop/sa/web',
  network: 'one',
  locality: 'eu/a/1',
  clusterId: 'Kubernetes',
  weight: 1,
  tlsMode: 'istio',
  namespace: 'shop',
  workloadName: 'web',
  nodeName: 'node-1',
  hostname: 'web-0',
  subdomain: 'web',
  health: 'healthy',
};

const other: Required<Endpoint> = {
  address: '10.0.0.2',
  port: 8081,
  servicePortName: 'grpc',
  labels: { app: 'shop', version: 'v2' },
  serviceAccount: '',
  network: '',
  locality: '',
  clusterId: 'other',
  weight: 2,
  tlsMode: 'disabled',
  namespace: 'till',
  workloadName: 'api',
  nodeName: 'node-2',
  hostname: 'web-1',
  subdomain: '',
  health: 'draining',
};

const fields = Object.keys(endpoint) as (keyof Endpoint)[];

describe('an endpoint', () => {
  test('equals a copy with copied labels', () => {
    expect(sameEndpoint(endpoint, { ...endpoint, labels: { ...endpoint.labels } })).toBe(true);
  });

  test.each(fields)('differs if its %s differs or is missing', (field) => {
    expect(sameEndpoint(endpoint, { ...endpoint, [field]: other[field] })).toBe(false);
    if (field === 'labels') return;
    const { [field]: _, ...withoutField } = endpoint;
    expect(sameEndpoint(endpoint, withoutField as Endpoint)).toBe(false);
    expect(sameEndpoint(withoutField as Endpoint, endpoint)).toBe(false);
  });
});

test('a workload differs if anything but its name differs, because workloads are compared by name', () => {
  const { port: _, servicePortName: __, ...template } = endpoint;
  const workload: Required<Workload> = {
    kind: 'Pod',
    namespace: 'shop',
    name: 'web-0',
    labels: { app: 'shop' },
    addresses: ['10.0.0.1'],
    creationTime: 1,
    ports: { http: 8080 },
    template,
  };
  const change: Omit<Required<Workload>, 'kind' | 'namespace' | 'name'> = {
    labels: { app: 'till' },
    addresses: ['10.0.0.1', '10.0.0.2'],
    creationTime: 2,
    ports: { http: 8081 },
    template: { ...template, weight: 7 },
  };
  expect(sameWorkload(workload, structuredClone(workload))).toBe(true);
  for (const field of Object.keys(change) as (keyof typeof change)[]) {
    expect(sameWorkload(workload, { ...workload, [field]: change[field] }), field).toBe(false);
  }
  expect(sameWorkload(workload, { ...workload, ports: {} })).toBe(false);
  expect(sameWorkload(undefined, undefined)).toBe(true);
  expect(sameWorkload(workload, undefined)).toBe(false);
});
