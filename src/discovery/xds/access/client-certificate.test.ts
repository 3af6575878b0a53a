/** Each certificate violates one rule of the SPIFFE standard and is signed by a trusted CA. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { readCertificates } from '../../../identity/certificate.ts';
import type { CallPeer } from './authenticator.ts';
import { clientCertificate } from './client-certificate.ts';

const directory = mkdtempSync(join(tmpdir(), 'client-certificate-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const ownId = 'spiffe://cluster.local/ns/shop/sa/cart';
const bank = 'spiffe://cluster.local/ns/bank/sa/vault';
const authority = createAuthority();

const derOf = (pem: string): Buffer => Buffer.from(readCertificates(pem)[0]!.der);
const showing = (raw: Buffer, otherFields: object = {}): CallPeer => ({
  ...{ host: '127.0.0.1', address: '127.0.0.1:1', metadata: () => [] },
  certificate: { raw, ...otherFields },
});
const authenticateNames = (...names: string[]) =>
  clientCertificate().authenticate(showing(derOf(authority.issue(names).certificate)));

const goodFields = {
  subjectAltName: `critical,URI:${ownId}`,
  keyUsage: 'critical,digitalSignature',
  extendedKeyUsage: 'serverAuth,clientAuth',
  basicConstraints: 'critical,CA:FALSE',
};

function buildCertificate(changes: Partial<typeof goodFields>): Buffer {
  const lines = Object.entries({ ...goodFields, ...changes }).flatMap(([name, value]) =>
    value ? `${name}=${value}` : [],
  );
  const config = join(directory, 'config');
  writeFileSync(config, ['[req]', 'distinguished_name=dn', 'x509_extensions=x', '[dn]', '[x]', ...lines].join('\n'));
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'];
  const command = ['req', '-x509', '-config', config, ...key, '-subj', '/'];
  return derOf(execFileSync('openssl', command, { encoding: 'utf8', stdio: 'pipe' }));
}

describe('authentication by client certificate', () => {
  it('uses the URI SAN if there is exactly one, regardless of DNS names', async () => {
    expect(await authenticateNames(ownId)).toEqual({ identities: [ownId] });
    expect(await authenticateNames('x.y', ownId)).toEqual({ identities: [ownId] });
  });

  it.each<[string, string[], string]>([
    ['no URI', ['x.y'], 'one URI SAN, got 0'],
    ['two workloads', [ownId, bank], 'one URI SAN, got 2'],
    ['the same workload twice', [ownId, ownId], 'one URI SAN, got 2'],
    ['a workload and another URI', [ownId, 'https://x'], 'one URI SAN, got 2'],
    ['a URI that contains another one after a comma', [`x, URI:${bank}`], 'start with spiffe://'],
    ['a query in the URI', [`${bank}?x`], 'path must contain only'],
    ['a percent-encoded letter in the URI', ['spiffe://cluster.local/ns/b%61nk/sa/vault'], 'path must contain only'],
    ['a relative path segment in the URI', ['spiffe://cluster.local/ns/shop/../bank/sa/vault'], 'segment . or ..'],
    ['a port in the URI', ['spiffe://cluster.local:1/ns/bank/sa/vault'], 'trust domain'],
    ['a URI without a path', ['spiffe://cluster.local'], 'a SPIFFE ID with a path'],
  ])('rejects a certificate with %s', async (_, names, reason) => {
    expect(await authenticateNames(...names)).toEqual({ failure: expect.stringContaining(reason) });
  });

  it.each<[string, Partial<typeof goodFields>, string]>([
    ['of a CA', { basicConstraints: 'critical,CA:TRUE' }, 'CA:FALSE, got CA:TRUE'],
    ['without a key usage', { keyUsage: '' }, 'keyUsage must be digitalSignature, got none'],
    ['with a key usage that is not critical', { keyUsage: 'digitalSignature' }, 'not critical'],
    ['with a key usage without signatures', { keyUsage: 'critical,keyAgreement' }, 'keyUsage must be digitalSignature'],
    ['with a key usage for signing certificates', { keyUsage: 'critical,digitalSignature,keyCertSign' }, 'keyCertSign'],
    ['with a key usage for signing CRLs', { keyUsage: 'critical,digitalSignature,cRLSign' }, 'cRLSign'],
    [
      'for server authentication only',
      { extendedKeyUsage: 'serverAuth' },
      'extendedKeyUsage must be serverAuth and clientAuth',
    ],
  ])('rejects a certificate %s', async (_, changes, reason) => {
    expect(await clientCertificate().authenticate(showing(buildCertificate(changes)))).toEqual({
      failure: expect.stringContaining(reason),
    });
  });

  it("accepts certificates as Istio's CA issues them: P-256 with keyEncipherment", async () => {
    const raw = buildCertificate({ keyUsage: 'critical,digitalSignature,keyEncipherment' });
    expect(await clientCertificate().authenticate(showing(raw))).toEqual({ identities: [ownId] });
  });

  it('rejects a certificate that cannot be parsed', async () => {
    expect(await clientCertificate().authenticate(showing(Buffer.from('x')))).toHaveProperty('failure');
  });

  it('rejects a certificate that expires while the connection is open', async () => {
    const end = Date.parse('2026-11-23T02:05:07Z');
    const raw = derOf(authority.issue([ownId]).certificate);
    const authenticateAt = (now: number, valid_to = 'Nov 23 02:05:07 2026 GMT') =>
      clientCertificate(undefined, () => now).authenticate(showing(raw, { valid_to }));
    expect(await authenticateAt(end + 999)).toEqual({ identities: [ownId] });
    expect(await authenticateAt(end + 1_000)).toEqual({
      failure: 'the certificate expired on Nov 23 02:05:07 2026 GMT',
    });
    expect(await authenticateAt(end, 'some day')).toHaveProperty('failure');
  });

  it('rejects a certificate that is revoked after being accepted', async () => {
    let isRevoked = false;
    const authenticator = clientCertificate(() => isRevoked);
    const peer = showing(derOf(authority.issue([ownId]).certificate));
    expect(await authenticator.authenticate(peer)).toEqual({ identities: [ownId] });
    isRevoked = true;
    expect(await authenticator.authenticate(peer)).toEqual({ failure: 'the certificate is revoked' });
  });
});
