/** Replaced and evicted values are garbage-collected. The test counts remaining values after full collections. */
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { type Config, type ConfigKey, parseConfigKey } from '../../../model/config/config.ts';
import { routeType } from '../../../networking/index.ts';
import { ResourceMemory } from './resource-memory.ts';

const liveCount = (refs: readonly WeakRef<object>[]): number => refs.filter((ref) => ref.deref() !== undefined).length;

async function heapMb(): Promise<number> {
  await collectGarbage();
  await collectGarbage();
  return getHeapStatistics().used_heap_size / 1e6;
}

function dependent(key: string): { dependsOn: ConfigKey[] } {
  return { dependsOn: [parseConfigKey(key)] };
}

/** Builds twenty values repeatedly from new inputs. */
async function buildRepeatedly(cache: ResourceMemory): Promise<readonly WeakRef<object>[]> {
  const builtRefs: WeakRef<object>[] = [];
  for (let round = 0; round < 200; round++) {
    for (let key = 0; key < 20; key++) {
      builtRefs.push(new WeakRef(cache.getOrBuild('RDS', `${key}`, [{}], () => dependent(`VirtualService/n/${key}`))));
    }
    cache.invalidate([]);
    await turn();
  }
  return builtRefs;
}

test('ResourceMemory releases a replaced value, even after an eviction', async () => {
  const roomy = new ResourceMemory({ maxEntries: 1_000 });
  const fullCache = new ResourceMemory({ maxEntries: 1_000 });
  for (let index = 0; index < 1_001; index++)
    fullCache.getOrBuild('CDS', `${index}`, [], () => dependent('ServiceEntry/n/gone'));
  fullCache.invalidate(['ServiceEntry/n/gone']);
  for (const cache of [roomy, fullCache]) {
    const builtRefs = await buildRepeatedly(cache);
    await collectGarbage();
    expect(liveCount(builtRefs)).toBe(20);
    expect(cache.size).toBe(20);
  }
});

test('ResourceMemory releases an evicted value and its neighbors in the eviction queue', async () => {
  const cache = new ResourceMemory({ maxEntries: 50 });
  const builtRefs: WeakRef<object>[] = [];
  for (let key = 0; key < 5_000; key++) {
    builtRefs.push(new WeakRef(cache.getOrBuild('EDS', `${key}`, [], () => dependent('ServiceEntry/n/s'))));
    if (key % 500 === 0) await turn();
  }
  cache.invalidate([]);
  await collectGarbage();
  expect(liveCount(builtRefs)).toBe(50);
  expect(liveCount(builtRefs.slice(-50))).toBe(50);
});

test('ResourceMemory limits the number of evicted keys that it remembers, even if these are requested again', async () => {
  const cache = new ResourceMemory({ maxEntries: 1_000 });
  const rounds = (times: number): void => {
    for (let at = 0; at < times * 1_500; at++)
      cache.getOrBuild('EDS', `${at % 1_500}`, [], () => dependent('ServiceEntry/n/s'));
    cache.invalidate([]);
  };
  rounds(20);
  const heapBefore = await heapMb();
  rounds(400);
  expect(cache.counts.rebuilds).toBeGreaterThan(500_000);
  expect((await heapMb()) - heapBefore).toBeLessThan(1.5);
});

const namespaces = 5;
const space = (index: number): string => `ns-${index % namespaces}`;
const host = (index: number): string => `svc-${index}.${space(index)}.svc.cluster.local`;

function service(index: number): Config {
  return givenObject('ServiceEntry', space(index), `s${index}`, {
    hosts: [host(index)],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.1.0.${index}` }],
  });
}

function route(index: number, timeoutMs: number): Config {
  const http = [{ timeoutMs, route: [{ destination: { host: host(index) } }] }];
  return givenObject('VirtualService', space(index), `v${index}`, { hosts: [host(index)], http });
}

test('EncodedCache keeps only the latest route configurations after 200 route changes', async () => {
  const all = Array.from({ length: 40 }, (_, index) => index);
  const world = new GivenWorld(all.flatMap((index) => [service(index), route(index, 1)]));
  const nodes = Array.from({ length: namespaces }, (_, index) =>
    world.connect(`10.9.0.${index}`, { namespace: `ns-${index}` }),
  );
  const sentRefs: WeakRef<object>[] = [];
  for (let round = 0; round < 200; round++) {
    const change = world.put(route(round % 40, 10 + round));
    for (const node of nodes) {
      node.typesToPush(change, [routeType]);
      sentRefs.push(new WeakRef(node.get(routeType, ['8080'])!.resources.get('8080')!));
    }
    await turn();
  }
  expect(liveCount(sentRefs)).toBeGreaterThan(0);
  await collectGarbage();
  await collectGarbage();
  // These are the values of the last and the previous context, and the bases of the latter.
  expect(liveCount(sentRefs)).toBeLessThanOrEqual(3 * namespaces);
});
