/** Incremental ordering has the same result as sorting all services, at lower cost. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countedWork } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import type { Service } from '../../model/services/service.ts';
import { compareServiceAge, defaultRegistryOptions } from '../../model/services/service-registry.ts';
import { MeshRegistries } from './mesh-registries.ts';
import { ServicesByAge } from './services-by-age.ts';

const namespace = 'shop';
const service = (hostname: string, creationTime: number): Service =>
  ({ hostname, namespace, creationTime }) as unknown as Service;

describe('ServicesByAge', () => {
  it('equals a complete sort after any sequence of additions, removals and moves', () => {
    const change = fc.record({
      hostname: fc.constantFrom('a', 'b', 'c', 'd'),
      ages: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 3 }),
      turned: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
        const servicesByName = new Map<string, Service[]>();
        const services = new ServicesByAge();
        for (const { hostname, ages, turned } of changes) {
          // The same services in another order.
          const now = turned
            ? (servicesByName.get(hostname) ?? []).toReversed()
            : ages.map((creationTime) => service(hostname, creationTime));
          servicesByName.set(hostname, now);
          services.setNamed({ hostname, namespace }, now);
          const sortedServices = [...servicesByName.values()].flat().sort(compareServiceAge);
          expect(services.services.map((one) => sortedServices.indexOf(one))).toEqual(sortedServices.map((_, i) => i));
        }
      }),
    );
  });
});

describe('editing one of 1,000 services', () => {
  const size = 1_000;
  const entry = (i: number, port: number): Config => ({
    ...{ kind: 'ServiceEntry', apiVersion: 'networking.istio.io/v1', name: `s${i}`, namespace },
    ...{ labels: {}, annotations: {}, resourceVersion: `${port}`, creationTimestamp: 0 },
    spec: {
      ...{ hosts: [`s${i}.example.com`], location: 'MESH_INTERNAL', resolution: 'STATIC' },
      ...{ ports: [{ number: port, name: 'http', protocol: 'HTTP' }], endpoints: [{ address: '10.0.0.1' }] },
    },
  });

  it('compares the service with only a few others', () => {
    const objects = new Map(Array.from({ length: size }, (_, i) => [`ServiceEntry/${namespace}/s${i}`, entry(i, 80)]));
    const registries = new MeshRegistries(defaultRegistryOptions);
    registries.load(objects);
    const key = `ServiceEntry/${namespace}/s617`;
    objects.set(key, entry(617, 81));
    const callCounts = countedWork(() => registries.apply([{ key, event: 'update' }], objects));
    const { services } = registries.snapshot;
    expect(services.find(({ hostname }) => hostname === 's617.example.com')?.ports[0]?.number).toBe(81);
    expect(services.toSorted(compareServiceAge).every((one, i) => one === services[i])).toBe(true);
    const comparisons = [...callCounts].find(([operation]) => operation.startsWith(`${compareServiceAge.name} `))?.[1];
    expect(comparisons).toBeGreaterThan(1);
    expect(comparisons).toBeLessThan(100);
  });
});
