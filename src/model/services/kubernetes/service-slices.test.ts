import { expect, it } from 'vitest';
import type { Config } from '../../config/config.ts';
import type { EndpointSlice } from '../../kinds/kubernetes/endpoint-slice.ts';
import { ServiceSlices } from './service-slices.ts';
import { Users } from './users.ts';

const sliceOf = (service: string): Config<EndpointSlice> => ({
  ...{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', name: `${service}-1`, namespace: 'shop' },
  ...{ labels: { 'kubernetes.io/service-name': service }, annotations: {}, resourceVersion: '1', creationTimestamp: 0 },
  spec: { addressType: 'IPv4', endpoints: [], ports: [] },
});

it('of a service whose slices are gone nothing is kept, however many come and go', () => {
  const slices = new ServiceSlices();
  for (let index = 0; index < 10; index++) {
    slices.put('shop/slice', sliceOf(`web-${index}`));
    expect(slices.of(`shop/web-${index}`)).toHaveLength(1);
    expect(slices.size).toBe(1);
  }
  slices.put('shop/slice', undefined);
  expect(slices.size).toBe(0);
});

it('of what nobody uses any more nothing is kept', () => {
  const users = new Users();
  users.put('shop/web', [], ['node n1', 'pod shop/a']);
  users.put('shop/web', ['node n1', 'pod shop/a'], ['node n2']);
  expect([users.size, [...users.of('node n2')], [...users.of('node n1')]]).toEqual([1, ['shop/web'], []]);
  users.put('shop/web', ['node n2'], []);
  expect(users.size).toBe(0);
});
