/** The certificate of the port with TLS when the authority signs it (spec/discovery.md §11, "istiod's own certificate"). */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { readCertificate } from '../../../identity/certificate.ts';
import { backdatedMs, issueLeaf } from '../../../identity/issue.ts';
import type { PemServerCertificate } from '../../xds/secure-port/server-certificates.ts';
import type { AuthorityInForce } from '../authority.ts';

export interface OwnCertificate extends PemServerCertificate {
  readonly notBefore: Date;
  readonly issuer: AuthorityId;
}

/** Whether there should be another: its authority is not to be trusted any more, or most of its life is over. */
export function isOwnCertificateDue(own: OwnCertificate, { roots, ofServer }: AuthorityInForce, now: Date): boolean {
  if (!roots.includes(own.issuer)) return true;
  // The clock was set back: no client with the right time would mind, but one of this host refuses it.
  if (now < own.notBefore) return true;
  const life = own.notAfter.getTime() - own.notBefore.getTime();
  const left = own.notAfter.getTime() - now.getTime();
  // Another that ends with the same authority would be no better.
  return left < life / 3 && ofServer.notAfter > own.notAfter;
}

/** Of a certificate by an expired authority, in milliseconds: the next authority replaces it at once. */
const expiredAuthorityMs = 1_000;

/**
 * A new key and its certificate for these names of hosts. It ends with the authority: another authority means another
 * certificate. An expired authority signs too: clients refuse that certificate, but the control plane starts and continues, so that its leader
 * replaces the root.
 *
 * @param uris SPIFFE IDs, for a client of another control plane
 */
export function issueOwnCertificate(
  { ofServer: material, bundle }: AuthorityInForce,
  dns: readonly string[],
  now: Date,
  uris: readonly string[] = [],
): OwnCertificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const notAfter = new Date(Math.max(material.notAfter.getTime(), now.getTime() + expiredAuthorityMs));
  const lifetime = { notBefore: new Date(now.getTime() - backdatedMs), notAfter };
  const names = { uris: [...uris], dns: [...new Set(dns)], ips: [] };
  const leaf = readCertificate(issueLeaf(material.issuer, createPublicKey(privateKey), names, lifetime));
  const between = material.path.slice(0, -1).map(({ pem }) => pem);
  return {
    ca: Buffer.from(bundle.pem),
    chain: Buffer.from([leaf.pem, ...between].join('')),
    key: Buffer.from(privateKey.export({ format: 'pem', type: 'pkcs8' }) as string),
    serialNumber: leaf.serialNumber,
    notBefore: leaf.notBefore,
    issuer: material.id,
    notAfter: leaf.notAfter,
  };
}

/** Names by which agents know the control plane. */
export function ownNames(namespace: string, revision: string, others: readonly string[]): string[] {
  const services = ['istiod', 'istiod-remote', 'istio-pilot', ...(revision === '' ? [] : [`istiod-${revision}`])];
  return [...services.map((service) => `${service}.${namespace}.svc`), ...others];
}
