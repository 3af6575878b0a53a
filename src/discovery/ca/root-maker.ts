/** A root of our own, which signs itself (spec/discovery.md §11, "self-signed"). */
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { readCertificate } from '../../identity/certificate.ts';
import { backdatedMs, issueRoot } from '../../identity/issue.ts';
import { type AuthorityMaterial, materialOf } from './authority-material.ts';

export interface RootOptions {
  /** The organization in its name. */
  readonly trustDomain: string;
  /** CITADEL_SELF_SIGNED_CA_CERT_TTL. */
  readonly ttlMs: number;
  /** Bits of an RSA key (CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE); 0: a key on P-256. */
  readonly rsaBits: number;
}

/** Its name holds the time to the second, and its key an id: two roots of one name break each other (spec/identity.md §1 #4). */
export async function makeRoot({ trustDomain, ttlMs, rsaBits }: RootOptions, now: Date): Promise<AuthorityMaterial> {
  const make = promisify(generateKeyPair);
  const { privateKey } =
    rsaBits > 0 ? await make('rsa', { modulusLength: rsaBits }) : await make('ec', { namedCurve: 'P-256' });
  const second = new Date(Math.floor(now.getTime() / 1000) * 1000);
  const subject = { organization: trustDomain, commonName: `root ${second.toISOString()}` };
  const lifetime = {
    notBefore: new Date(second.getTime() - backdatedMs),
    notAfter: new Date(second.getTime() + ttlMs),
  };
  const certificate = readCertificate(issueRoot(privateKey, subject, lifetime));
  return materialOf({ certificate, privateKey }, [], [certificate], now);
}
