import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { AuthorityId } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { readCertificate } from '../../../identity/certificate.ts';
import { backdatingMs, issueLeaf } from '../../../identity/issue.ts';
import type { PemServerCertificate } from '../../xds/secure-port/server-certificates.ts';
import type { ActiveAuthority } from '../authority.ts';

export interface ControlPlaneCertificate extends PemServerCertificate {
  readonly notBefore: Date;
  readonly issuer: AuthorityId;
}

/** Whether the certificate must be replaced: its authority is no longer trusted, or less than a third of its lifetime remains. */
export function isCertificateDue(
  current: ControlPlaneCertificate,
  { roots, serverAuthority }: ActiveAuthority,
  now: Date,
): boolean {
  if (!roots.includes(current.issuer)) return true;
  // If the clock was set back, clients with the same clock reject the certificate.
  if (now < current.notBefore) return true;
  const lifetimeMs = current.notAfter.getTime() - current.notBefore.getTime();
  const remainingMs = current.notAfter.getTime() - now.getTime();
  // A certificate with the same expiry would be no improvement.
  return remainingMs < lifetimeMs / 3 && serverAuthority.notAfter > current.notAfter;
}

/** The next authority soon replaces an expired one. */
const expiredAuthorityMs = 1_000;

/**
 * The certificate expires with its authority.
 *
 * @param uris SPIFFE IDs, for a client of another control plane
 */
export function issueControlPlaneCertificate(
  { serverAuthority: material, bundle }: ActiveAuthority,
  dns: readonly string[],
  now: Date,
  uris: readonly string[] = [],
): ControlPlaneCertificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const notAfter = new Date(Math.max(material.notAfter.getTime(), now.getTime() + expiredAuthorityMs));
  const lifetime = { notBefore: new Date(now.getTime() - backdatingMs), notAfter };
  const names = { uris: [...uris], dns: [...new Set(dns)], ips: [] };
  const leaf = readCertificate(issueLeaf(material.issuer, createPublicKey(privateKey), names, lifetime));
  const intermediates = material.path.slice(0, -1).map(({ pem }) => pem);
  return {
    ca: Buffer.from(bundle.pem),
    chain: Buffer.from([leaf.pem, ...intermediates].join('')),
    key: Buffer.from(privateKey.export({ format: 'pem', type: 'pkcs8' }) as string),
    serialNumber: leaf.serialNumber,
    notBefore: leaf.notBefore,
    issuer: material.id,
    notAfter: leaf.notAfter,
  };
}

export function controlPlaneNames(namespace: string, revision: string, otherNames: readonly string[]): string[] {
  const services = ['istiod', 'istiod-remote', 'istio-pilot', ...(revision === '' ? [] : [`istiod-${revision}`])];
  return [...services.map((service) => `${service}.${namespace}.svc`), ...otherNames];
}
