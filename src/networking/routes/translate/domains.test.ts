import { describe, expect, it } from 'vitest';
import { domainsOf } from './domains.ts';

const proxyDomain = 'shop.svc.cluster.local';

describe('the names of a service', () => {
  it('of the client’s own namespace are all that its resolver would complete', () => {
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

  it('of another namespace have the namespace in them', () => {
    const domains = domainsOf({ hostname: 'reviews.other.svc.cluster.local', addresses: [] }, { proxyDomain });
    expect(domains).toEqual([
      'reviews.other.svc.cluster.local',
      'reviews.other.svc.cluster.local.',
      'reviews.other',
      'reviews.other.svc',
    ]);
  });

  it('outside of the client’s domain are the host alone; IPv6 addresses are in brackets; ranges are no names', () => {
    const service = { hostname: 'api.example.com', addresses: ['2001:db8::1', '10.0.0.0/8', '0.0.0.0'] };
    expect(domainsOf(service, { proxyDomain })).toEqual(['api.example.com', 'api.example.com.', '[2001:db8::1]']);
  });

  it('that are an IPv6 address are in brackets, as clients write it', () => {
    expect(domainsOf({ hostname: '2001:db8::1', addresses: [] }, { proxyDomain })).toEqual(['[2001:db8::1]']);
    expect(domainsOf({ hostname: '2001:db8::1', addresses: [] }, { proxyDomain, port: 80 })).toContain(
      '[2001:db8::1]:80',
    );
  });

  it('that are a wildcard stay as they are', () => {
    expect(domainsOf({ hostname: '*.example.com', addresses: [] }, { proxyDomain })).toEqual(['*.example.com']);
  });

  it('of a headless service cover its pods', () => {
    const service = { hostname: 'db.shop.svc.cluster.local', addresses: ['0.0.0.0'], headless: true };
    expect(domainsOf(service, { proxyDomain })).toContain('*.db.shop');
  });

  it('have the port where a listener serves all ports', () => {
    const domains = domainsOf({ hostname: '*.example.com', addresses: [] }, { proxyDomain, port: 8080 });
    expect(domains).toEqual(['*.example.com', '*.example.com:8080']);
  });
});
