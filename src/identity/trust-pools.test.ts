import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readCertificate } from './certificate.ts';
import { type Issuer, issueIntermediate, issueLeaf, issueRoot } from './issue.ts';
import { TrustBundle } from './trust-bundle.ts';
import { TrustPools } from './trust-pools.ts';

const now = new Date();
const life = (lifetimeMs: number) => ({
  notBefore: new Date(now.getTime() - 60_000),
  notAfter: new Date(now.getTime() + lifetimeMs),
});
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

function rootOf(commonName: string): Issuer {
  const privateKey = newKey();
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'test', commonName }, life(60_000))),
  };
}

function issuedBy(issuer: Issuer): Issuer {
  const privateKey = newKey();
  const subject = { organization: 'test', commonName: 'between' };
  const der = issueIntermediate(issuer, createPublicKey(privateKey), subject, life(60_000));
  return { privateKey, certificate: readCertificate(der) };
}

const leaf = (issuer: Issuer, trustDomain: string, lifetimeMs = 60_000): Uint8Array =>
  issueLeaf(
    issuer,
    createPublicKey(newKey()),
    { uris: [`spiffe://${trustDomain}/ns/a/sa/b`], dns: [], ips: [] },
    life(lifetimeMs),
  );

const [ownIssuer, otherIssuer, third] = ['mine', 'theirs', 'third'].map(rootOf) as [Issuer, Issuer, Issuer];
const meshBundle = new TrustBundle('shop.test', [ownIssuer.certificate]);
const pools = new TrustPools(
  meshBundle,
  new Map([
    ['old.test', [otherIssuer.certificate]],
    ['older.test', [third.certificate]],
  ]),
);
const isAccepted = (...chain: Uint8Array[]): boolean => pools.isAliasWorkload(chain, now);

describe('a root of an alias trust domain', () => {
  it('verifies workloads of its alias', () => {
    expect(isAccepted(leaf(otherIssuer, 'old.test'))).toBe(true);
    const intermediate = issuedBy(otherIssuer);
    expect(isAccepted(leaf(intermediate, 'old.test'), intermediate.certificate.der)).toBe(true);
  });

  it.each([
    ['the mesh itself', 'shop.test'],
    ['another alias', 'older.test'],
    ['an unknown trust domain', 'bank.test'],
  ])('does not verify workloads of %s', (_, trustDomain) => {
    expect(isAccepted(leaf(otherIssuer, trustDomain))).toBe(false);
    const intermediate = issuedBy(otherIssuer);
    expect(isAccepted(leaf(intermediate, trustDomain), intermediate.certificate.der, otherIssuer.certificate.der)).toBe(
      false,
    );
  });
});

describe('a certificate chain', () => {
  const client = { uris: ['spiffe://old.test/ns/a/sa/b', 'spiffe://shop.test/ns/a/sa/b'], dns: [], ips: [] };
  it.each([
    ['that is empty', []],
    ['that contains no certificate', [Buffer.from('none')]],
    ['that has expired', [leaf(otherIssuer, 'old.test', -1_500)]],
    ['of an unknown root with the same name', [leaf(rootOf('theirs'), 'old.test')]],
    ['whose intermediate is missing', [leaf(issuedBy(otherIssuer), 'old.test')]],
    ['of a leaf with two identities', [issueLeaf(otherIssuer, createPublicKey(newKey()), client, life(60_000))]],
    ['of a root without a leaf', [otherIssuer.certificate.der]],
    ['of a root of the mesh, which TLS verifies', [leaf(ownIssuer, 'shop.test')]],
  ])('is rejected if it is a chain %s', (_, chain) => {
    expect(isAccepted(...chain)).toBe(false);
  });
});
