import { describe, expect, expectTypeOf, it } from 'vitest';
import { AddressBook, type TargetRef } from './proxy-lookup.ts';
import type { Endpoint } from './service.ts';

const at = (address: string, port: number): Endpoint => ({
  ...{ address, port, servicePortName: 'http', labels: {}, serviceAccount: '', network: '', locality: '' },
  ...{ clusterId: 'a', weight: 0, tlsMode: 'disabled', namespace: '', workloadName: '', health: 'healthy' },
});
const [bank, mallory] = ['bank', 'mallory'].map((namespace) => ({ hostname: 'web.test', namespace }));
const ports = (book: AddressBook, namespace: string): number[] =>
  book.at(namespace, ['10.0.0.1']).map(({ targetPort }) => targetPort);

describe('an address book', () => {
  it('answers with the services of the namespace that it is asked for, also where another one has host and address', () => {
    const book = new AddressBook().with(bank!, [], [at('10.0.0.1', 80)]).with(mallory!, [], [at('10.0.0.1', 666)]);
    expect([ports(book, 'bank'), ports(book, 'mallory'), ports(book, ''), ports(book, 'b')]).toEqual([
      [80],
      [666],
      [],
      [],
    ]);
  });

  it('keeps the services of a namespace when another one removes its own', () => {
    const before = new AddressBook().with(bank!, [], [at('10.0.0.1', 80)]).with(mallory!, [], [at('10.0.0.1', 666)]);
    const after = before.with(mallory!, [at('10.0.0.1', 666)], []);
    expect([ports(after, 'bank'), ports(after, 'mallory')]).toEqual([[80], []]);
    expect(ports(before, 'mallory')).toEqual([666]);
  });

  it('cannot be asked without a namespace', () => {
    expectTypeOf<Parameters<AddressBook['at']>>().toEqualTypeOf<[namespace: string, addresses: readonly string[]]>();
    expectTypeOf<TargetRef>().not.toHaveProperty('namespace');
  });
});
