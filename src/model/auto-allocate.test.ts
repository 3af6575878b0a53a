import { describe, expect, it } from 'vitest';
import { allocateAddresses } from './auto-allocate.ts';
import { givenMesh } from './given-mesh.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `shop/se-${index}/h-${index}.b`);

describe('allocated addresses', () => {
  it('are of their ranges, each once', () => {
    const all = [...allocateAddresses(names(5_000)).values()];
    expect(new Set(all.map(({ ipv4 }) => ipv4)).size).toBe(5_000);
    expect(new Set(all.map(({ ipv6 }) => ipv6)).size).toBe(5_000);
    for (const { ipv4, ipv6 } of all) {
      expect(ipv4).toMatch(/^240\.240\.\d+\.\d+$/);
      expect(ipv6).toMatch(/^2001:2::f0f0:[\da-f]+$/);
      expect(['240.240.0.0', '240.240.255.255']).not.toContain(ipv4);
    }
  });

  it('follow from the name: what is younger moves nobody who is older', () => {
    const few = allocateAddresses(names(3_000));
    const more = allocateAddresses(names(6_000));
    for (const [name, address] of few) expect(more.get(name)).toEqual(address);
  });

  it('are as many as the range has, and no more', () => {
    expect(allocateAddresses(names(70_000)).size).toBe(65_534);
  });
});

describe('a ServiceEntry', () => {
  const entry = (spec: string, labels = '{}'): string =>
    `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: shop, labels: ${labels}}\nspec: {ports: [{number: 80, name: http, protocol: HTTP}], ${spec}}\n`;
  const allocated = (yaml: string): unknown =>
    givenMesh(yaml).registry.services.map((one) => one.autoAllocated !== undefined);

  it('is given an address when it has none and something resolves it', () => {
    expect(allocated(entry('hosts: [a.b], resolution: DNS'))).toEqual([true]);
    expect(allocated(entry('hosts: [a.b], resolution: STATIC, addresses: [1.1.1.1]'))).toEqual([false]);
    expect(allocated(entry('hosts: [a.b], resolution: NONE'))).toEqual([false]);
    expect(allocated(entry('hosts: ["*.b"], resolution: STATIC'))).toEqual([false]);
    const refusing = '{networking.istio.io/enable-autoallocate-ip: "false"}';
    expect(allocated(entry('hosts: [a.b], resolution: DNS', refusing))).toEqual([false]);
  });
});
