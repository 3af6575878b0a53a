import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { defaultFeatures, type Features } from '../mesh/features.ts';
import { type AddressingShape, addressingKey, virtualAddresses } from './service-addresses.ts';

function serviceEntry(spec: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec: { hosts: [web.test], ports: [{ number: 443, name: tls, protocol: TLS }], ${spec} }
---`;
}

const dual = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, "fd00::1"], ports: [{ name: tls, port: 443 }] }
---`;

const metadata = { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' };

function addresses(
  yaml: string,
  shapeFields: Partial<AddressingShape>,
  features: Partial<Features> = {},
): readonly string[] {
  const [service] = givenMesh(yaml).registry.services;
  return virtualAddresses(service!, { ...givenShape(), ...shapeFields }, { ...defaultFeatures, ...features });
}

describe('the addresses of a service', () => {
  it('belong to the IP families of the proxy', () => {
    expect(addresses(dual, { ipFamily: 'v4' })).toEqual(['10.96.0.1']);
    expect(addresses(dual, { ipFamily: 'v6' })).toEqual(['fd00::1']);
    expect(addresses(dual, { ipFamily: 'dual' })).toEqual(['10.96.0.1', 'fd00::1']);
    expect(addresses(serviceEntry('addresses: ["fd00::/64"]'), { ipFamily: 'v4' })).toEqual(['fd00::/64']);
  });

  it('belong to the proxy’s own cluster', () => {
    const service = {
      ...givenMesh(dual).registry.services[0]!,
      clusterVIPs: { west: ['10.97.0.1'], east: ['0.0.0.0'] },
    };
    const of = (clusterId: string): readonly string[] =>
      virtualAddresses(service, { ...givenShape(), clusterId }, defaultFeatures);
    expect(of('west')).toEqual(['10.97.0.1']);
    expect(of('east')).toEqual([]);
    expect(of('north')).toEqual(['10.96.0.1']);
  });

  it('are allocated if the service has none and the proxy has a DNS proxy', () => {
    const dns = serviceEntry('resolution: DNS');
    const allocated = [expect.stringMatching(/^240\.240\./)];
    expect(addresses(dns, { metadata })).toEqual(allocated);
    expect(addresses(dns, { metadata: { DNS_CAPTURE: 'true' } })).toEqual(allocated);
    expect(addresses(dns, { metadata: {} })).toEqual([]);
    expect(addresses(serviceEntry('resolution: DNS, addresses: [1.1.1.1]'), { metadata })).toEqual(['1.1.1.1']);
    expect(addresses(dns, { metadata, ipFamily: 'v6' })).toEqual([expect.stringMatching(/^2001:2::f0f0:/)]);
  });

  it('are allocated only for proxies that request this if PILOT_ENABLE_IP_AUTOALLOCATE is off', () => {
    const dns = serviceEntry('resolution: DNS');
    const off = { autoAllocate: false };
    expect(addresses(dns, { metadata: { DNS_CAPTURE: 'true' } }, off)).toEqual([]);
    expect(addresses(dns, { metadata }, off)).toHaveLength(1);
  });

  it('are equal for proxies with the same addressing key', () => {
    const shape = givenShape();
    const keys = [{}, { clusterId: 'west' }, { ipFamily: 'v6' as const }, { metadata }].map((shapeFields) =>
      addressingKey({ ...shape, ...shapeFields }),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });
});
