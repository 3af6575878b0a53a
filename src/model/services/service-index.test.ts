import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sized } from '../../../test/harness/size-of-run.ts';
import { runToEnd } from '../../runtime/turns.ts';
import type { Service } from './service.ts';
import { ServiceIndex } from './service-index.ts';
import { compareServiceAge } from './service-registry.ts';

const namespaces = ['a', 'b', 'c', 'nobody'];

/** A service with one of few hosts, so that several namespaces define the same host. */
const service = fc
  .record({
    hostname: fc.constantFrom('x.test', 'y.test', 'z.test', '*.test'),
    namespace: fc.constantFrom('a', 'b', 'c'),
    creationTime: fc.nat(3),
    exportTo: fc.constantFrom(['*'], ['*'], ['.'], ['b'], ['a', 'c'], ['~']),
    registry: fc.constantFrom('External', 'Kubernetes'),
  })
  .map(
    ({ exportTo, ...fields }): Service =>
      ({ ...fields, exportTo: new Set(exportTo.map((one) => (one === '.' ? fields.namespace : one))) }) as never,
  );

/** Services to add, indexes to remove, and namespaces that query in between. */
const step = fc.record({
  come: fc.array(service, { maxLength: 3 }),
  go: fc.array(fc.nat(9), { maxLength: 2 }),
  asks: fc.subarray(namespaces),
});

it('an updated ServiceIndex lists the same services as a new one after any changes and queries', () => {
  fc.assert(
    fc.property(fc.array(service, { maxLength: 8 }), fc.array(step, { minLength: 1, maxLength: 6 }), (start, steps) => {
      let services = start.toSorted(compareServiceAge);
      let index = runToEnd(ServiceIndex.buildInSteps(services));
      for (const { come, go, asks } of steps) {
        for (const namespace of asks) {
          index.visibleTo(namespace);
          index.servicesResolvedFor(namespace);
        }
        services = [...services.filter((_, position) => !go.includes(position)), ...come].sort(compareServiceAge);
        index = runToEnd(ServiceIndex.buildInSteps(services, index));
        const rebuilt = runToEnd(ServiceIndex.buildInSteps(services));
        for (const namespace of asks) {
          expect(index.visibleTo(namespace)).toEqual(rebuilt.visibleTo(namespace));
          expect(index.servicesResolvedFor(namespace)).toEqual(rebuilt.servicesResolvedFor(namespace));
        }
      }
    }),
    { numRuns: sized({ quick: 100, short: 300, full: 5_000 }) },
  );
});
