import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostNames, hostIntersection, hostsOverlap, isHostWithin, mostSpecificKey, widerHosts } from './hostname.ts';

/** Orders hosts from most to least specific: names before wildcards, longer wildcards before shorter ones. */
function compareSpecificity(a: string, b: string): number {
  const [length, other] = [a, b].map((host) => (host.startsWith('*') ? host.length : Number.POSITIVE_INFINITY));
  return length === other ? 0 : other! - length!;
}

describe('host names and wildcards', () => {
  it.each([
    ['a.b.c', 'a.b.c', 'is within'],
    ['a.b.c', '*.b.c', 'is within'],
    ['*.b.c', '*.c', 'is within'],
    ['*.c', '*.b.c', 'is not within'],
    ['b.c', '*.b.c', 'is not within'],
    ['ab.c', '*.b.c', 'is not within'],
    ['a.b.c', '*', 'is within'],
    ['*', '*.c', 'is not within'],
    ['a.b.c', 'b.c', 'is not within'],
    ['ab.c', '*b.c', 'is within'],
    ['b.c', '*b.c', 'is not within'],
    ['*b.c', '*.c', 'is within'],
    ['*.b.c', '*b.c', 'is within'],
  ])('are compared: $0 $2 $1', (inner, outer, relation) => {
    expect(isHostWithin(inner, outer)).toBe(relation === 'is within');
  });

  it('have the narrower one as their intersection', () => {
    expect(hostIntersection('*.b.c', 'a.b.c')).toBe('a.b.c');
    expect(hostIntersection('*.c', '*.b.c')).toBe('*.b.c');
    expect(hostIntersection('*.b', '*.c')).toBeUndefined();
    expect(hostsOverlap('x.y', '*')).toBe(true);
  });

  it('are listed with their covering wildcards from the narrowest to the widest', () => {
    expect([...widerHosts('a.b.c')]).toEqual(['a.b.c', '*.b.c', '*.c', '*']);
    expect([...widerHosts('*.b.c')]).toEqual(['*.b.c', '*.c', '*']);
    expect([...widerHosts('*')]).toEqual(['*']);
  });

  it('are matched to the same most specific key as by a scan of all keys', () => {
    const label = fc.constantFrom('a', 'b', 'c');
    const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
    const key = fc.oneof(
      host,
      host.map((name) => `*.${name}`),
      host.map((name) => `*${name}`),
      fc.constant('*'),
    );
    fc.assert(
      fc.property(host, fc.uniqueArray(key), (needle, keys) => {
        const scanned = keys.filter((candidate) => isHostWithin(needle, candidate)).sort(compareSpecificity)[0];
        expect(mostSpecificKey(needle, new Set(keys))).toBe(scanned);
      }),
    );
  });

  it('are qualified only if they are short names', () => {
    const names = new HostNames('cluster.local');
    expect(names.qualify('reviews', 'shop')).toBe('reviews.shop.svc.cluster.local');
    expect(names.qualify('reviews.shop', 'x')).toBe('reviews.shop');
    expect(names.qualify('*', 'x')).toBe('*');
    expect(names.qualify('', 'x')).toBe('');
  });

  it('are qualified without Kubernetes only for known services', () => {
    const names = new HostNames('mesh.local', (hostname) => hostname === 'reviews.shop.svc.mesh.local');
    expect(names.qualify('reviews', 'shop')).toBe('reviews.shop.svc.mesh.local');
    expect(names.qualify('reviews', 'pay')).toBe('reviews.pay');
    expect(names.qualify('ratings.shop', 'pay')).toBe('ratings.shop');
  });
});
