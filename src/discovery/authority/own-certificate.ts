/** The certificate of the port with TLS when the authority signs it (spec/discovery.md §11, "istiod's own certificate"). */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readCertificate } from '../../identity/certificate.ts';
import { backdatedMs, issueLeaf } from '../../identity/issue.ts';
import type { ServerCertificate } from '../server-certificates.ts';
import type { AuthorityInForce } from './authority.ts';

/**
 * A new key and its certificate for these names of hosts. It ends with the authority: another authority means another
 * certificate.
 *
 * @throws Error when the authority has ended
 */
export function issueOwnCertificate(
  { material, bundle }: AuthorityInForce,
  dns: readonly string[],
  now: Date,
): ServerCertificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { notAfter } = material;
  if (notAfter <= now) throw new Error(`the authority has ended on ${notAfter.toISOString()}`);
  const lifetime = { notBefore: new Date(now.getTime() - backdatedMs), notAfter };
  const names = { uris: [], dns: [...new Set(dns)], ips: [] };
  const leaf = readCertificate(issueLeaf(material.issuer, createPublicKey(privateKey), names, lifetime));
  const between = material.path.slice(0, -1).map(({ pem }) => pem);
  return {
    ca: Buffer.from(bundle.pem),
    chain: Buffer.from([leaf.pem, ...between].join('')),
    key: Buffer.from(privateKey.export({ format: 'pem', type: 'pkcs8' }) as string),
    serialNumber: leaf.serialNumber,
    notAfter: leaf.notAfter,
  };
}

/** Names by which agents know the control plane. */
export function ownNames(namespace: string, revision: string, others: readonly string[]): string[] {
  const services = ['istiod', 'istiod-remote', 'istio-pilot', ...(revision === '' ? [] : [`istiod-${revision}`])];
  return [...services.map((service) => `${service}.${namespace}.svc`), ...others];
}
