import { describe, expect, it } from 'vitest';
import { setOf } from '../../../../test/fixtures/given-objects.ts';
import { allocateAddresses } from '../../../model/services/auto-allocate.ts';
import { Turns } from '../../../runtime/turns.ts';
import { AddressDerivation } from './address-derivation.ts';
import type { StatusFields } from './status-writer.ts';

const time = '2026-11-27T12:00:00Z';
const entry = (name: string, hosts: string, extraSpec = ''): string => `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${hosts}], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]${extraSpec}}
`;

/** @returns the written status of an entry with the status `present`, or `undefined` if nothing is written */
async function writtenStatus(yaml: string, name: string, present: StatusFields = {}, isWritten = true) {
  const objects = setOf(yaml);
  const derivation = new AddressDerivation({
    objects: () => objects,
    onChanged: () => () => {},
    isWritten: () => isWritten,
  });
  return (await derivation.derive(new Turns())).get(`ServiceEntry/shop/${name}`)?.next(present, time);
}

const { ipv4, ipv6 } = allocateAddresses(['shop/a.example.com']).get('shop/a.example.com')!;
const addressesOfA = [ipv4, ipv6].map((value) => ({ value, host: 'a.example.com' }));

it('ServiceEntry status contains both addresses of each host, and keeps the fields of other writers', async () => {
  const conditions = [{ type: 'Foreign', status: 'True' }];
  expect(await writtenStatus(entry('one', 'a.example.com'), 'one', { conditions })).toEqual({
    conditions,
    addresses: addressesOfA,
  });
  const twoHosts = (await writtenStatus(entry('one', 'a.example.com, b.example.com'), 'one'))!
    .addresses as typeof addressesOfA;
  expect(twoHosts.slice(0, 2)).toEqual(addressesOfA);
  expect(twoHosts.slice(2).map(({ host }) => host)).toEqual(['b.example.com', 'b.example.com']);
  expect(new Set(twoHosts.map(({ value }) => value)).size).toBe(4);
});

it('ServiceEntry status is not written again if its content is unchanged', async () => {
  expect(await writtenStatus(entry('one', 'a.example.com'), 'one', { addresses: addressesOfA })).toBeUndefined();
});

describe('ServiceEntry status', () => {
  it.each([
    ['with addresses of its own', entry('one', 'a.example.com', ', addresses: [10.1.1.1]')],
    ['whose only host is a wildcard', entry('one', '"*.example.com"', '').replace('DNS', 'STATIC')],
  ])('loses its addresses for an entry %s', async (_, yaml) => {
    const foreignStatus = { addresses: [{ value: '192.0.2.1', host: 'a' }] };
    expect(await writtenStatus(yaml, 'one')).toBeUndefined();
    expect(await writtenStatus(yaml, 'one', foreignStatus)).toBeUndefined();
    expect(await writtenStatus(yaml, 'one', { addresses: addressesOfA, conditions: [] })).toEqual({ conditions: [] });
  });

  it('is not written for an object from a file', async () => {
    expect(await writtenStatus(entry('one', 'a.example.com'), 'one', {}, false)).toBeUndefined();
  });
});

it('an entry from outside the cluster keeps its allocated address reserved', async () => {
  const yaml = entry('one', 'a.example.com') + entry('two', 'a.example.com');
  const [one, secondStatus] = [await writtenStatus(yaml, 'one'), await writtenStatus(yaml, 'two')];
  expect(secondStatus).toEqual(one);
});
