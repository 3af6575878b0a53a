import { describe, expect, expectTypeOf, it } from 'vitest';
import { threadCpuMsOf } from '../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../test/harness/growth.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { AddressBook, type TargetRef } from './proxy-lookup.ts';
import type { Endpoint } from './service.ts';

const at = (address: string, port: number): Endpoint => ({
  ...{ address, port, servicePortName: 'http', labels: {}, serviceAccount: '', network: '', locality: '' },
  ...{ clusterId: 'a', weight: 0, tlsMode: 'disabled', namespace: '', workloadName: '', health: 'healthy' },
});
const [bank, mallory] = ['bank', 'mallory'].map((namespace) => ({ hostname: 'web.test', namespace }));
const ports = (book: AddressBook, namespace: string): number[] =>
  book.targetsAt(namespace, ['10.0.0.1']).map(({ targetPort }) => targetPort);

describe('AddressBook', () => {
  it('returns only services of the given namespace, even if services of other namespaces have the same host and address', () => {
    const book = new AddressBook()
      .withService(bank!, [], [at('10.0.0.1', 80)])
      .withService(mallory!, [], [at('10.0.0.1', 666)]);
    expect([ports(book, 'bank'), ports(book, 'mallory'), ports(book, ''), ports(book, 'b')]).toEqual([
      [80],
      [666],
      [],
      [],
    ]);
  });

  it('keeps the services of a namespace when another namespace removes its own', () => {
    const previous = new AddressBook()
      .withService(bank!, [], [at('10.0.0.1', 80)])
      .withService(mallory!, [], [at('10.0.0.1', 666)]);
    const nextBook = previous.withService(mallory!, [at('10.0.0.1', 666)], []);
    expect([ports(nextBook, 'bank'), ports(nextBook, 'mallory')]).toEqual([[80], []]);
    expect(ports(previous, 'mallory')).toEqual([666]);
  });

  it('returns the services at an address sorted by host, regardless of the order of arrival', () => {
    const services = ['b.test', 'a.test', 'c.test'].map((hostname) => ({ hostname, namespace: 'bank' }));
    const change = (service: (typeof services)[number]) => ({
      ...service,
      previous: [],
      current: [at('10.0.0.1', 80)],
    });
    const hosts = (book: AddressBook): string[] => book.targetsAt('bank', ['10.0.0.1']).map(({ hostname }) => hostname);
    const bulkBook = runToEnd(new AddressBook().changeInSteps(services.map(change)));
    const oneByOne = services.reduce((book, one) => book.withService(one, [], [at('10.0.0.1', 80)]), new AddressBook());
    expect([hosts(bulkBook), hosts(oneByOne)]).toEqual([
      ['a.test', 'b.test', 'c.test'],
      ['a.test', 'b.test', 'c.test'],
    ]);
    expect(hosts(oneByOne.withService(services[1]!, [at('10.0.0.1', 80)], []))).toEqual(['b.test', 'c.test']);
  });

  it('takes linear time for services that share an address', () => {
    const services = 64_000;
    const costOf = (servicesPerAddress: number): number =>
      threadCpuMsOf(() => {
        for (let startedServices = 0; startedServices < services; startedServices += servicesPerAddress) {
          const changes = Array.from({ length: servicesPerAddress }, (_, index) => {
            return { hostname: `h${index}.test`, namespace: 'mallory', previous: [], current: [at('10.0.0.1', 80)] };
          });
          runToEnd(new AddressBook().changeInSteps(changes));
        }
      });
    costOf(1_000);
    // The limit applies to equal numbers of services; a quadratic cost would be 16 times as high.
    expect(growthOf(costOf, 1_000, 16_000)).toBeLessThan(5);
  });

  it('requires a namespace', () => {
    expectTypeOf<Parameters<AddressBook['targetsAt']>>().toEqualTypeOf<
      [namespace: string, addresses: readonly string[]]
    >();
    expectTypeOf<TargetRef>().not.toHaveProperty('namespace');
  });
});
