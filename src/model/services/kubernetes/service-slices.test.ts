import { expect, it } from 'vitest';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import type { Config } from '../../config/config.ts';
import type { EndpointSlice } from '../../kinds/kubernetes/endpoint-slice.ts';
import { ServiceSlices } from './service-slices.ts';
import { UsageIndex } from './usage-index.ts';

const sliceOf = (service: string): Config<EndpointSlice> => ({
  ...{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', name: `${service}-1`, namespace: 'shop' },
  ...{ labels: { 'kubernetes.io/service-name': service }, annotations: {}, resourceVersion: '1', creationTimestamp: 0 },
  spec: { addressType: 'IPv4', endpoints: [], ports: [] },
});

/** Returns the number of bytes retained after many additions and removals. */
async function retainedBytes(addAndRemove: (index: number) => void): Promise<number> {
  const usedBytes = async (): Promise<number> => {
    await collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  for (let index = 0; index < 1_000; index++) addAndRemove(index);
  const baseline = await usedBytes();
  for (let index = 1_000; index < 21_000; index++) addAndRemove(index);
  return (await usedBytes()) - baseline;
}

it('ServiceSlices keeps no memory for services without slices after many additions and removals', async () => {
  const slices = new ServiceSlices();
  const bytes = await retainedBytes((index) => {
    slices.setSlice('shop/slice', sliceOf(`web-${index}`));
    expect(slices.slicesOfService(`shop/web-${index}`)).toHaveLength(1);
  });
  slices.setSlice('shop/slice', undefined);
  expect(slices.slicesOfService('shop/web-20999')).toEqual([]);
  expect(bytes).toBeLessThan(1_000_000);
});

it('UsageIndex keeps no memory for unused keys', async () => {
  const users = new UsageIndex();
  users.setUsedKeys('shop/web', new Set(), new Set(['node n1', 'pod shop/a']));
  users.setUsedKeys('shop/web', new Set(['node n1', 'pod shop/a']), new Set(['node n2']));
  expect([[...users.usersOf('node n2')], [...users.usersOf('node n1')]]).toEqual([['shop/web'], []]);
  const bytes = await retainedBytes((index) => {
    users.setUsedKeys('shop/web', new Set(), new Set([`pod shop/${index}`]));
    users.setUsedKeys('shop/web', new Set([`pod shop/${index}`]), new Set());
  });
  expect(bytes).toBeLessThan(1_000_000);
});
