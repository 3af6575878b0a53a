import { describe, expect, it } from 'vitest';
import { domainsOf } from './domains.ts';

const proxyDomain = 'shop.svc.cluster.local';

describe('domains of a service', () => {
  it("a service in the client's namespace has every name that the resolver completes", () => {
    const domains = domainsOf({ hostname: 'reviews.shop.svc.cluster.local', addresses: ['10.1.0.2'] }, { proxyDomain });
    expect(domains).toEqual([
      'reviews.shop.svc.cluster.local',
      'reviews.shop.svc.cluster.local.',
      'reviews',
      'reviews.shop',
      'reviews.shop.svc',
      '10.1.0.2',
    ]);
  });

  it('a service in another namespace has only names with the namespace', () => {
    const domains = domainsOf({ hostname: 'reviews.other.svc.cluster.local', addresses: [] }, { proxyDomain });
    expect(domains).toEqual([
      'reviews.other.svc.cluster.local',
      'reviews.other.svc.cluster.local.',
      'reviews.other',
      'reviews.other.svc',
    ]);
  });

  it("a service outside the client's domain has only its host, with brackets for IPv6 and no names for ranges", () => {
    const service = { hostname: 'api.example.com', addresses: ['2001:db8::1', '10.0.0.0/8', '0.0.0.0'] };
    expect(domainsOf(service, { proxyDomain })).toEqual(['api.example.com', 'api.example.com.', '[2001:db8::1]']);
  });

  it('an IPv6 address has brackets, as clients write it', () => {
    expect(domainsOf({ hostname: '2001:db8::1', addresses: [] }, { proxyDomain })).toEqual(['[2001:db8::1]']);
    expect(domainsOf({ hostname: '2001:db8::1', addresses: [] }, { proxyDomain, port: 80 })).toContain(
      '[2001:db8::1]:80',
    );
  });

  it('a wildcard is unchanged', () => {
    expect(domainsOf({ hostname: '*.example.com', addresses: [] }, { proxyDomain })).toEqual(['*.example.com']);
  });

  it('a headless service has domains for its pods', () => {
    const service = { hostname: 'db.shop.svc.cluster.local', addresses: ['0.0.0.0'], headless: true };
    expect(domainsOf(service, { proxyDomain })).toContain('*.db.shop');
  });

  it('domains contain the port if a listener serves all ports', () => {
    const domains = domainsOf({ hostname: '*.example.com', addresses: [] }, { proxyDomain, port: 8080 });
    expect(domains).toEqual(['*.example.com', '*.example.com:8080']);
  });
});
