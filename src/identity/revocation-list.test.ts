import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cpuMs } from '../../test/harness/cpu-time.ts';
import { readCertificate } from './certificate.ts';
import type { CertificateProblem } from './certificate-problem.ts';
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

function issuedBy(issuer: Issuer): Issuer {
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
const intermediate = issuedBy(root);
const other = rootOf('other');

const check = (text: string, issuers = [root], previous?: Parameters<typeof checkRevocationLists>[3]) =>
  checkRevocationLists(
    text,
    issuers.map(({ certificate }) => certificate),
    now,
    previous,
  );

describe('a revocation list', () => {
  it('is usable if an authority signed it and it is currently valid', () => {
    const { usable, problems } = check(listOf(root));
    expect(problems).toEqual([]);
    expect(usable).toMatchObject([{ authority: root.certificate.sha256, nextUpdate: hours(1_000) }]);
  });

  const damaged = Buffer.from(listOf(root).replaceAll(/-----.*-----|\n/g, ''), 'base64');
  damaged[damaged.length - 1]! ^= 1;

  const noList: Partial<CertificateProblem> = {
    code: 'REVOCATION_LIST_INVALID',
    message: 'no PEM block "X509 CRL" found',
  };
  const rootMissing = { code: 'REVOCATION_LIST_MISSING', got: 'CN=root' };

  it.each<[string, string, Partial<CertificateProblem>]>([
    ['a text without PEM block', 'garbage', noList],
    ['an empty text', '', noList],
    ['a certificate', root.certificate.pem, { path: 'PEM block 1', expected: '"X509 CRL"', got: '"CERTIFICATE"' }],
    [
      'a certificate labelled as a list',
      pemOf('X509 CRL', root.certificate.der),
      { code: 'REVOCATION_LIST_INVALID', message: expect.stringMatching(/^PEM block 1 \(X509 CRL\) is not a certif/) },
    ],
    [
      'a PEM block without DER',
      pemOf('X509 CRL', Buffer.from('garbage')),
      { code: 'REVOCATION_LIST_INVALID', message: expect.stringContaining('is not a certificate revocation list') },
    ],
    ['a truncated PEM block', listOf(root).slice(0, 200), { code: 'PEM_INVALID' }],
    [
      'a list of another authority',
      listOf(other),
      { code: 'REVOCATION_LIST_INVALID', message: expect.stringContaining('not issued by any') },
    ],
    [
      'a list of another authority with the same name',
      listOf(rootOf('root')),
      { code: 'REVOCATION_LIST_INVALID', message: expect.stringContaining('signature does not match') },
    ],
    [
      'a list with a damaged signature',
      pemOf('X509 CRL', damaged),
      { code: 'REVOCATION_LIST_INVALID', message: expect.stringContaining('signature does not match') },
    ],
    ['an expired list', listOf(root, { to: hours(-0.5) }), { code: 'REVOCATION_LIST_EXPIRED' }],
    ['a list that is not yet valid', listOf(root, { from: hours(1) }), { code: 'REVOCATION_LIST_NOT_YET_VALID' }],
  ])('is rejected with a description of the problem: %s', (_, text, problem) => {
    const { usable, problems } = check(text);
    expect(usable).toEqual([]);
    expect(problems[0]).toMatchObject(problem);
    expect(problems.at(-1)).toMatchObject(rootMissing);
  });

  it('is required for every authority in a chain', () => {
    const { usable, problems } = check(listOf(root), [intermediate, root]);
    expect(usable).toEqual([]);
    expect(problems).toMatchObject([{ code: 'REVOCATION_LIST_MISSING', got: 'CN=intermediate' }]);
    expect(problems[0]?.message).toBe(
      'no usable certificate revocation list of CN=intermediate: Envoy would reject its clients',
    );
    expect(check(`${listOf(root)}${listOf(intermediate)}`, [intermediate, root])).toMatchObject({ problems: [] });
  });

  it('applies to clients of its root even if another root has no list', () => {
    const { usable, problems } = check(listOf(root), [root, other]);
    expect(usable).toMatchObject([{ authority: root.certificate.sha256 }]);
    expect(problems).toMatchObject([{ code: 'REVOCATION_LIST_MISSING', got: 'CN=other' }]);
  });

  it('is unusable if the chain of its authority does not end at a root', () => {
    const { problems } = check(listOf(intermediate), [intermediate]);
    expect(problems).toMatchObject([
      {
        ...{ code: 'REVOCATION_LIST_MISSING', got: 'CN=intermediate' },
        message: expect.stringContaining('issuer of CA certificate CN=intermediate is missing'),
      },
    ]);
  });

  it('replaces the previous list only if the new list is usable', () => {
    const first = check(`${listOf(root, { revoked: ['0a'] })}${listOf(intermediate)}`, [intermediate, root]);
    const secondCheck = check(
      `${listOf(intermediate, { revoked: ['0b'] })}garbage`,
      [intermediate, root],
      first.usable,
    );
    expect(secondCheck.problems).toMatchObject([
      { ...rootMissing, message: expect.stringContaining('keeping its previous list') },
    ]);
    expect(secondCheck.usable.find(({ authority }) => authority === root.certificate.sha256)).toEqual(first.usable[0]);
    const keptList = first.usable.find(({ authority }) => authority === intermediate.certificate.sha256);
    expect(secondCheck.usable).not.toContainEqual(keptList);
    expect(check('garbage', [other], first.usable).usable).toEqual([]);
  });

  it('can be replaced by an older list from the user', () => {
    const newer = check(listOf(root, { revoked: ['0a'] })).usable;
    const olderList = listOf(root, { from: hours(-5) });
    expect(check(olderList, [root], newer).usable).toMatchObject([{ pem: olderList }]);
  });

  it('can have thousands of entries', () => {
    const revokedSerials = Array.from({ length: 20_000 }, (_, index) => (0x1000_0000 + index).toString(16));
    const text = listOf(root, { revoked: revokedSerials });
    expect(cpuMs(() => expect(check(text).problems).toEqual([]))).toBeLessThan(500);
  });

  it('is reported days before it expires', () => {
    const expiringList = check(listOf(root, { to: hours(6 * 24) })).usable;
    expect(expiryWarning(expiringList, now)).toMatchObject({
      code: 'REVOCATION_LIST_EXPIRED',
      message: expect.stringMatching(/expires on .*: Envoy rejects every client from then on/),
    });
    expect(expiryWarning(expiringList, hours(-48))).toBeUndefined();
    expect(expiryWarning(expiringList, hours(7 * 24))?.message).toMatch(/expired on /);
  });
});

it('a check of revocation lists returns the next time at which a list becomes valid or expires', () => {
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
