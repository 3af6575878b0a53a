import { describe, expect, it } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { AddressAllocation, allocateAddresses } from './auto-allocate.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `shop/h-${index}.b`);

describe('allocated virtual IPs', () => {
  it('are unique and within their ranges', () => {
    const all = [...allocateAddresses(names(5_000)).values()];
    expect(new Set(all.map(({ ipv4 }) => ipv4)).size).toBe(5_000);
    expect(new Set(all.map(({ ipv6 }) => ipv6)).size).toBe(5_000);
    for (const { ipv4, ipv6 } of all) {
      expect(ipv4).toMatch(/^240\.240\.\d+\.\d+$/);
      expect(ipv6).toMatch(/^2001:2::f0f0:[\da-f]+$/);
      expect(ipv4).not.toMatch(/\.(0|255)$/);
    }
  });

  it('depend only on the name and on older names', () => {
    const fewAddresses = allocateAddresses(names(3_000));
    const moreAddresses = allocateAddresses(names(6_000));
    for (const [name, address] of fewAddresses) expect(moreAddresses.get(name)).toEqual(address);
  });

  it('are allocated until the range is exhausted', () => {
    const all = [...allocateAddresses(names(70_000)).values()];
    expect(all).toHaveLength(256 * 254 - 254);
    expect(new Set(all.map(({ ipv4 }) => ipv4)).size).toBe(all.length);
  });

  it('equal those of Istio, even for a name that two ServiceEntries share', () => {
    expect(allocateAddresses(['default/istio.io']).get('default/istio.io')?.ipv4).toBe('240.240.122.168');
    const repeated = allocateAddresses(['default/istio.io', 'default/istio.io']);
    expect(repeated.get('default/istio.io')?.ipv4).toBe('240.240.91.120');
  });
});

describe('a ServiceEntry', () => {
  const entry = (spec: string, labels = '{}'): string =>
    `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: shop, labels: ${labels}}\nspec: {ports: [{number: 80, name: http, protocol: HTTP}], ${spec}}\n`;
  const allocated = (yaml: string): unknown =>
    givenMesh(yaml).registry.services.map((one) => one.autoAllocated !== undefined);

  it('receives a virtual IP if it has no address and is resolved', () => {
    expect(allocated(entry('hosts: [a.b], resolution: DNS'))).toEqual([true]);
    expect(allocated(entry('hosts: [a.b], resolution: STATIC, addresses: [1.1.1.1]'))).toEqual([false]);
    expect(allocated(entry('hosts: [a.b], resolution: NONE'))).toEqual([false]);
    expect(allocated(entry('hosts: ["*.b"], resolution: STATIC'))).toEqual([false]);
    const refusing = '{networking.istio.io/enable-autoallocate-ip: "false"}';
    expect(allocated(entry('hosts: [a.b], resolution: DNS', refusing))).toEqual([false]);
  });

  it('shares the virtual IP of its host with other ServiceEntries of its namespace', () => {
    const first = entry('hosts: [a.b], resolution: DNS');
    const secondEntry = first.replace('name: a,', 'name: b,').replace('number: 80', 'number: 81');
    const otherNamespaceEntry = first.replace('namespace: shop', 'namespace: other');
    const { services } = givenMesh([first, secondEntry, otherNamespaceEntry].join('---\n')).registry;
    const [a, b, other] = services.map(({ autoAllocated }) => autoAllocated?.ipv4);
    expect(a).toBeDefined();
    expect(b).toBe(a);
    expect(other).not.toBe(a);
  });

  it('receives no virtual IP if another ServiceEntry with its host has an address', () => {
    const first = entry('hosts: [a.b], resolution: DNS');
    for (const spec of ['resolution: NONE', 'resolution: DNS, addresses: [1.1.1.1]']) {
      const secondEntry = entry(`hosts: [a.b], ${spec}`).replace('name: a,', 'name: b,');
      expect(allocated(`${first}---\n${secondEntry}`)).toEqual([true, false]);
    }
  });
});

describe('virtual IPs of a changing set of names', () => {
  it('equal those of a full allocation after any number of changes', () => {
    // About a thousand of these names collide.
    const present = names(12_000);
    const allocation = new AddressAllocation();
    for (const _ of allocation.allocateInSteps(present));
    let [incrementalCount, completeCount] = [0, 0];
    for (let change = 0; change < 300; change++) {
      const position = (change * 7_919) % present.length;
      const [removedNames, addedNames] = [new Set([present[position]!]), new Set([`bank/new-${change}.b`])];
      present.splice(position, 1, ...addedNames);
      if (allocation.change(removedNames, addedNames)) incrementalCount++;
      else {
        completeCount++;
        for (const _ of allocation.allocateInSteps(present));
      }
    }
    expect(allocation.addresses.size).toBe(present.length);
    for (const [name, { ipv4 }] of allocateAddresses(present)) expect(allocation.get(name)?.ipv4, name).toBe(ipv4);
    // Most changes cause no collision; the others need a complete allocation.
    expect(incrementalCount).toBeGreaterThan(150);
    expect(completeCount).toBeGreaterThan(10);
  });

  it('require a full allocation if a name occurs twice or the range is exhausted', () => {
    const allocation = new AddressAllocation();
    for (const _ of allocation.allocateInSteps(['shop/a.b', 'shop/a.b']));
    expect(allocation.change(new Set(['shop/a.b']), new Set())).toBe(false);
    for (const _ of allocation.allocateInSteps(names(70_000)));
    expect(allocation.change(new Set([names(1)[0]!]), new Set())).toBe(false);
  });
});
