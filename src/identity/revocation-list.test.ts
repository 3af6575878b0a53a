import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cpuMs } from '../../test/harness/cpu-time.ts';
import { readCertificate } from './certificate.ts';
import { type Issuer, issueIntermediate, issueRevocationList, issueRoot } from './issue.ts';
import { pemOf } from './pem.ts';
import { checkRevocationLists, expiryWarning } from './revocation-list.ts';

const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const hours = (count: number): Date => new Date(now.getTime() + count * 3_600_000);
const life = { notBefore: hours(-1), notAfter: hours(10_000) };

function rootOf(commonName: string): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'test', commonName }, life)),
  };
}

function below(issuer: Issuer): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = { organization: 'test', commonName: 'intermediate' };
  const der = issueIntermediate(issuer, createPublicKey(privateKey), subject, life);
  return { privateKey, certificate: readCertificate(der) };
}

function listOf(issuer: Issuer, { from = hours(-1), to = hours(1_000), revoked = [] as string[] } = {}): string {
  const entries = revoked.map((serialNumber) => ({ serialNumber, at: hours(-1) }));
  return issueRevocationList(issuer, { number: 1, thisUpdate: from, nextUpdate: to, revoked: entries });
}

const root = rootOf('root');
const intermediate = below(root);
const other = rootOf('other');

const check = (text: string, issuers = [root], previous?: Parameters<typeof checkRevocationLists>[3]) =>
  checkRevocationLists(
    text,
    issuers.map(({ certificate }) => certificate),
    now,
    previous,
  );

describe('a revocation list', () => {
  it('is usable if an authority signed it and it is valid now', () => {
    const { usable, problems } = check(listOf(root));
    expect(problems).toEqual([]);
    expect(usable).toMatchObject([{ authority: root.certificate.sha256, nextUpdate: hours(1_000) }]);
  });

  const damaged = Buffer.from(listOf(root).replaceAll(/-----.*-----|\n/g, ''), 'base64');
  damaged[damaged.length - 1]! ^= 1;

  it.each([
    ['text', 'garbage', /has no PEM block "X509 CRL"/],
    ['an empty text', '', /has no PEM block "X509 CRL"/],
    ['a certificate', root.certificate.pem, /PEM block 1 must be "X509 CRL", got "CERTIFICATE"/],
    [
      'a certificate labelled as a list',
      pemOf('X509 CRL', root.certificate.der),
      /PEM block 1 \(X509 CRL\) is not a certif/,
    ],
    ['no DER', pemOf('X509 CRL', Buffer.from('garbage')), /is not a certificate revocation list/],
    ['cut off', listOf(root).slice(0, 200), /is not readable as PEM: a block X509 CRL has no end/],
    ['another authority’s', listOf(other), /is of an issuer that is none of the CA certificates/],
    ['of the name of the authority with another key', listOf(rootOf('root')), /is not signed by CN=root/],
    ['of a damaged signature', pemOf('X509 CRL', damaged), /is not signed by CN=root/],
    ['expired', listOf(root, { to: hours(-0.5) }), /expired on /],
    ['not valid yet', listOf(root, { from: hours(1) }), /is not valid before /],
  ])('is rejected if it is %s, and the problem is described', (_, text, problem) => {
    const { usable, problems } = check(text);
    expect(usable).toEqual([]);
    expect(problems[0]).toMatch(problem);
    expect(problems.at(-1)).toBe('has no usable list of CN=root: Envoy would refuse its clients');
  });

  it('is needed for every authority of the chain', () => {
    const { usable, problems } = check(listOf(root), [intermediate, root]);
    expect(usable).toEqual([]);
    expect(problems).toEqual(['has no usable list of CN=intermediate: Envoy would refuse its clients']);
    expect(check(`${listOf(root)}${listOf(intermediate)}`, [intermediate, root])).toMatchObject({ problems: [] });
  });

  it('serves the clients of one root although another root has none', () => {
    const { usable, problems } = check(listOf(root), [root, other]);
    expect(usable).toMatchObject([{ authority: root.certificate.sha256 }]);
    expect(problems).toEqual(['has no usable list of CN=other: Envoy would refuse its clients']);
  });

  it('is of no use where the chain of the authorities does not end at a root', () => {
    const { problems } = check(listOf(intermediate), [intermediate]);
    expect(problems).toEqual([expect.stringContaining('lack the issuer of CN=intermediate')]);
  });

  it('keeps the place of the previous one until there is another usable one', () => {
    const first = check(`${listOf(root, { revoked: ['0a'] })}${listOf(intermediate)}`, [intermediate, root]);
    const second = check(`${listOf(intermediate, { revoked: ['0b'] })}garbage`, [intermediate, root], first.usable);
    expect(second.problems).toEqual(['has no usable list of CN=root: its previous list stays in use']);
    expect(second.usable.find(({ authority }) => authority === root.certificate.sha256)).toEqual(first.usable[0]);
    const kept = first.usable.find(({ authority }) => authority === intermediate.certificate.sha256);
    expect(second.usable).not.toContainEqual(kept);
    expect(check('garbage', [other], first.usable).usable).toEqual([]);
  });

  it('is replaced by an older one if the user provides that', () => {
    const newer = check(listOf(root, { revoked: ['0a'] })).usable;
    const older = listOf(root, { from: hours(-5) });
    expect(check(older, [root], newer).usable).toMatchObject([{ pem: older }]);
  });

  it('may have thousands of entries', () => {
    const revoked = Array.from({ length: 20_000 }, (_, index) => (0x1000_0000 + index).toString(16));
    const text = listOf(root, { revoked });
    expect(cpuMs(() => expect(check(text).problems).toEqual([]))).toBeLessThan(500);
  });

  it('is reported days before it expires', () => {
    const soon = check(listOf(root, { to: hours(6 * 24) })).usable;
    expect(expiryWarning(soon, now)).toMatch(/expires on .*: Envoy refuses every client from then on/);
    expect(expiryWarning(soon, hours(-48))).toBeUndefined();
    expect(expiryWarning(soon, hours(7 * 24))).toMatch(/expired on /);
  });
});

it('a check says when a list becomes valid or expires first, after which it has another result', () => {
  const recheckOf = (text: string, issuers = [root]) => check(text, issuers).recheckAt;
  expect(recheckOf(listOf(root, { to: hours(5) }))).toEqual(hours(5));
  expect(recheckOf(listOf(root, { from: hours(2), to: hours(5) }))).toEqual(hours(2));
  expect(recheckOf(listOf(root, { to: hours(5) }) + listOf(root, { from: hours(4), to: hours(9) }))).toEqual(hours(4));
  expect(
    recheckOf(listOf(root, { to: hours(7) }) + listOf(intermediate, { to: hours(6) }), [root, intermediate]),
  ).toEqual(hours(6));
  expect(recheckOf(listOf(root, { to: hours(-0.5) }))).toBeUndefined();
  expect(recheckOf('garbage')).toBeUndefined();
});
