import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { readCertificate } from '../../identity/certificate.ts';
import { backdatingMs, issueRoot } from '../../identity/issue.ts';
import { type AuthorityMaterial, buildAuthorityMaterial } from './authority-material.ts';

export interface RootCertificateOptions {
  /** Organization of the subject. */
  readonly trustDomain: string;
  /** CITADEL_SELF_SIGNED_CA_CERT_TTL, in milliseconds. */
  readonly ttlMs: number;
  /** CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE. 0 selects an ECDSA P-256 key. */
  readonly rsaBits: number;
}

/** Roots with the same subject break verification, so the subject contains the time and the key ID. */
export async function generateRoot(
  { trustDomain, ttlMs, rsaBits }: RootCertificateOptions,
  now: Date,
): Promise<AuthorityMaterial> {
  const generateKeys = promisify(generateKeyPair);
  const { privateKey } =
    rsaBits > 0
      ? await generateKeys('rsa', { modulusLength: rsaBits })
      : await generateKeys('ec', { namedCurve: 'P-256' });
  const notBefore = new Date(Math.floor(now.getTime() / 1000) * 1000);
  const subject = { organization: trustDomain, commonName: `root ${notBefore.toISOString()}` };
  const lifetime = {
    notBefore: new Date(notBefore.getTime() - backdatingMs),
    notAfter: new Date(notBefore.getTime() + ttlMs),
  };
  const certificate = readCertificate(issueRoot(privateKey, subject, lifetime));
  return buildAuthorityMaterial({ certificate, privateKey }, [], [certificate], now);
}
