/** Verifies issued certificates with OpenSSL's strictest rules and with chartpilot's verification. */
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate as CertificateStructure } from '@peculiar/asn1-x509';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cpuMs } from '../../test/harness/cpu-time.ts';
import { type Certificate, readCertificate } from './certificate.ts';
import { earliestExpiryOf, findPath } from './certificate-path.ts';
import { type Issuer, issueIntermediate, issueLeaf, issueRevocationList, issueRoot } from './issue.ts';
import { TrustBundle } from './trust-bundle.ts';
import { svidOf, svidProblems } from './x509-svid.ts';

const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const hours = (count: number): Date => new Date(now.getTime() + count * 3_600_000);
const life = (to: number, from = -1) => ({ notBefore: hours(from), notAfter: hours(to) });

function keyOf(type: 'ec' | 'rsa'): KeyObject {
  return type === 'ec'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    : generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}

function rootOf(commonName: string, type: 'ec' | 'rsa' = 'ec', lifetime = life(1000)): Issuer {
  const privateKey = keyOf(type);
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'cluster.local', commonName }, lifetime)),
  };
}

function issuedBy(issuer: Issuer, lifetime = life(500), commonName = 'intermediate'): Issuer {
  const privateKey = keyOf('ec');
  const subject = { organization: 'cluster.local', commonName };
  const der = issueIntermediate(issuer, createPublicKey(privateKey), subject, lifetime);
  return { privateKey, certificate: readCertificate(der) };
}

function leafOf(issuer: Issuer, lifetime = life(24), key = keyOf('ec')): Certificate {
  return readCertificate(issueLeaf(issuer, createPublicKey(key), { uris: [uri], dns: [], ips: [] }, lifetime));
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'identity-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function openssl(...args: string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
}

function fileOf(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

function verified(leaf: Certificate, roots: string, intermediates = ''): string {
  const files = ['-CAfile', fileOf('roots.pem', roots)];
  if (intermediates !== '') files.push('-untrusted', fileOf('intermediates.pem', intermediates));
  return openssl('verify', '-x509_strict', '-purpose', 'sslserver', ...files, fileOf('leaf.pem', leaf.pem));
}

describe('an issued certificate', () => {
  it.each(['ec', 'rsa'] as const)("passes OpenSSL's strictest verification with %s keys", (type) => {
    const root = rootOf('root', type);
    const leaf = leafOf(root, life(24), keyOf(type));
    expect(verified(leaf, root.certificate.pem)).toContain('OK');
    expect(svidProblems(leaf)).toEqual([]);
    expect(svidOf(leaf)).toEqual({ trustDomain: 'cluster.local', path: '/ns/shop/sa/cart' });
    expect(leaf.isSubjectEmpty).toBe(true);
    expect(leaf.alternativeNames).toEqual({ isCritical: true, uris: [uri], dns: [], ips: [], otherNames: 0 });
    expect(leaf.keyUsage?.flags.has('keyEncipherment')).toBe(type === 'rsa');
  });

  it('is chained through an intermediate, and expires with the first expiring certificate of its chain', () => {
    const root = rootOf('root');
    const intermediate = issuedBy(root, life(2));
    const leaf = leafOf(intermediate, life(24));
    expect(verified(leaf, root.certificate.pem, intermediate.certificate.pem)).toContain('OK');
    const result = findPath({
      certificate: leaf,
      intermediates: [intermediate.certificate],
      roots: [root.certificate],
      at: now,
    });
    expect(result).toEqual({ path: [leaf, intermediate.certificate, root.certificate] });
    expect(earliestExpiryOf([leaf, intermediate.certificate, root.certificate])).toEqual(hours(2));
  });

  // Without key IDs, verification fails for every client with one of the two orders.
  it('is verified even if another root has the same subject, in either order of the bundle', () => {
    const [oldRoot, newRoot] = [rootOf('root'), rootOf('root')];
    for (const issuer of [oldRoot, newRoot]) {
      const leaf = leafOf(issuer);
      expect(verified(leaf, oldRoot.certificate.pem + newRoot.certificate.pem)).toContain('OK');
      expect(verified(leaf, newRoot.certificate.pem + oldRoot.certificate.pem)).toContain('OK');
      const roots = [oldRoot.certificate, newRoot.certificate];
      const path = [leaf, issuer.certificate];
      expect(findPath({ certificate: leaf, intermediates: [], roots, at: now })).toEqual({ path });
      expect(findPath({ certificate: leaf, intermediates: [], roots: roots.reverse(), at: now })).toEqual({ path });
    }
  });

  it('has a unique positive 128-bit serial number', () => {
    const root = rootOf('root');
    const numbers = Array.from({ length: 20 }, () => leafOf(root).serialNumber);
    expect(new Set(numbers).size).toBe(20);
    for (const number of numbers) expect(number).toMatch(/^[4-7][0-9A-F]{31}$/);
  });

  it('equals the encoding by the schema byte for byte, for each signer and key type', () => {
    const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    const issuers = [
      rootOf('one', 'ec'),
      rootOf('two', 'rsa'),
      issuedBy(rootOf('three')),
      rootOf('four', 'ec', life(300_000)),
    ];
    for (const issuer of [...issuers, ...issuers]) {
      for (const key of [keyOf('ec'), keyOf('rsa'), p384]) {
        const leaf = leafOf(issuer, { notBefore: now, notAfter: issuer.certificate.notAfter }, key);
        const names = { uris: [], dns: ['istiod.istio-system.svc', 'localhost'], ips: ['127.0.0.1'] };
        const server = issueLeaf(issuer, createPublicKey(key), names, life(1));
        for (const der of [issuer.certificate.der, leaf.der, server]) {
          const encodedAgain = Buffer.from(AsnConvert.serialize(AsnConvert.parse(der, CertificateStructure)));
          expect(encodedAgain.toString('hex')).toBe(Buffer.from(der).toString('hex'));
        }
        expect(leaf.authorityKeyId).toBe(issuer.certificate.subjectKeyId);
        expect(leaf.keyUsage?.flags.has('keyEncipherment')).toBe(key.asymmetricKeyType === 'rsa');
        expect(leaf.notAfter).toEqual(issuer.certificate.notAfter);
        expect(leaf.x509.verify(issuer.certificate.publicKey)).toBe(true);
      }
    }
  });

  it('supports dates after 2050', () => {
    const lifetime = { notBefore: now, notAfter: new Date('2060-01-02T03:04:05Z') };
    const root = rootOf('root', 'ec', lifetime);
    expect(root.certificate.notAfter).toEqual(lifetime.notAfter);
    expect(verified(leafOf(root), root.certificate.pem)).toContain('OK');
  });
});

describe('a revocation list', () => {
  const list = (issuer: Issuer, revokedSerials: string[]): string =>
    issueRevocationList(issuer, {
      number: 7,
      thisUpdate: hours(-1),
      nextUpdate: hours(24),
      revoked: revokedSerials.map((serialNumber) => ({ serialNumber, at: now })),
    });

  it('revokes only the certificates that it contains, and a list of another root stays empty', () => {
    const [oldRoot, newRoot] = [rootOf('old'), rootOf('fresh')];
    const [revokedLeaf, validLeaf, other] = [leafOf(oldRoot), leafOf(oldRoot), leafOf(newRoot)];
    const lists = fileOf('lists.pem', list(oldRoot, [revokedLeaf.serialNumber]) + list(newRoot, []));
    const roots = fileOf('both.pem', oldRoot.certificate.pem + newRoot.certificate.pem);
    const check = (leaf: Certificate): string =>
      openssl('verify', '-crl_check', '-CAfile', roots, '-CRLfile', lists, fileOf('leaf.pem', leaf.pem));
    expect(check(validLeaf)).toContain('OK');
    expect(check(other)).toContain('OK');
    expect(() => check(revokedLeaf)).toThrow('certificate revoked');
  });
});

describe('findPath', () => {
  const root = rootOf('root');
  const findPathFor = (certificate: Certificate, intermediates: Certificate[], roots: Certificate[], at = now) =>
    findPath({ certificate, intermediates, roots, at });

  const noIssuer = 'no trusted root or intermediate is its issuer';
  it.each<[string, () => ReturnType<typeof findPath>, string, string?]>([
    ['a leaf without roots', () => findPathFor(leafOf(root), [], []), 'CERTIFICATE_CHAIN_INVALID', noIssuer],
    [
      'a leaf of another root with the same name',
      () => findPathFor(leafOf(root), [], [rootOf('root').certificate]),
      'CERTIFICATE_CHAIN_INVALID',
      noIssuer,
    ],
    ['an expired leaf', () => findPathFor(leafOf(root, life(-1, -2)), [], [root.certificate]), 'CERTIFICATE_EXPIRED'],
    [
      'a leaf that is not yet valid',
      () => findPathFor(leafOf(root, life(2, 1)), [], [root.certificate]),
      'CERTIFICATE_NOT_YET_VALID',
    ],
    [
      'an expired root',
      () => {
        const expiredRoot = rootOf('ended', 'ec', life(-1, -9));
        return findPathFor(leafOf(expiredRoot), [], [expiredRoot.certificate]);
      },
      'CERTIFICATE_EXPIRED',
      'issuer CN=ended expired on',
    ],
    [
      'a leaf that signed another one',
      () => {
        const key = keyOf('ec');
        const signer = { privateKey: key, certificate: leafOf(root, life(24), key) };
        return findPathFor(leafOf(signer), [signer.certificate], [root.certificate]);
      },
      'CERTIFICATE_CHAIN_INVALID',
      noIssuer,
    ],
    [
      'an authority below one with path length 0',
      () => {
        const first = issuedBy(root);
        const secondIssuer = issuedBy(first, life(500), 'second');
        return findPathFor(leafOf(secondIssuer), [first.certificate, secondIssuer.certificate], [root.certificate]);
      },
      'CERTIFICATE_CHAIN_INVALID',
      'has path length constraint 0, but 1 intermediate',
    ],
  ])('rejects %s', (_, question, code, problem = '') => {
    expect(question()).toEqual({ code, problem: expect.stringContaining(problem) });
  });

  it('verifies a limited number of certificates with the same name', () => {
    const sameNamed = Array.from({ length: 40 }, () => issuedBy(root).certificate);
    const privateKey = keyOf('ec');
    // A leaf of this authority references no key, so every authority with this name could be its issuer.
    const issuerWithoutKeyId = { privateKey, certificate: { ...issuedBy(root).certificate, subjectKeyId: undefined } };
    const duplicated = [...sameNamed, ...sameNamed.map((one) => ({ ...one }))];
    const spentMs = cpuMs(() => {
      expect(findPathFor(leafOf(issuerWithoutKeyId), duplicated, [root.certificate])).toHaveProperty('problem');
    });
    expect(spentMs).toBeLessThan(5_000);
  });
});

describe('TrustBundle', () => {
  const [one, other] = [rootOf('one').certificate, rootOf('other').certificate];

  it('has the same hash regardless of order, line endings and comments', () => {
    const bundle = TrustBundle.fromPem('cluster.local', one.pem + other.pem);
    const text = `# comment\r\n${(other.pem + one.pem + other.pem).replaceAll('\n', '\r\n')}`;
    const sameBundle = TrustBundle.fromPem('cluster.local', text);
    expect(sameBundle.hash).toBe(bundle.hash);
    expect(sameBundle.pem).toBe(bundle.pem);
    expect(sameBundle.roots).toHaveLength(2);
  });

  it('has a different hash if a root differs', () => {
    const bundle = new TrustBundle('cluster.local', [one]);
    expect(bundle.withRoots(other).hash).not.toBe(bundle.hash);
    expect(bundle.withRoots(other).withoutRoot(one).roots).toEqual([other]);
    expect(bundle.withRoots(other).includes(bundle)).toBe(true);
    expect(bundle.includes(bundle.withRoots(other))).toBe(false);
    expect(new TrustBundle('other.domain', [one]).includes(bundle)).toBe(false);
  });

  it.each([
    ['an empty text', ''],
    ['a leaf', leafOf(rootOf('root')).pem],
    ['a truncated certificate', one.pem.slice(0, 300)],
    ['a certificate with a missing line', one.pem.replace(/\n.{64}\n/, '\n')],
  ])('rejects %s', (_, pem) => {
    expect(() => TrustBundle.fromPem('cluster.local', pem)).toThrow();
  });
});
