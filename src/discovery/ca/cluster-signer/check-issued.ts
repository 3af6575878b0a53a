/** An external signer may sign anything, so its certificates are checked. */
import { type Certificate, readCertificates } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { CertificateOrder, IssuedChain } from '../issuing/registrar.ts';

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';
/** Tolerance for signers that round `notBefore` or whose clocks differ. */
const toleranceMs = 5 * 60_000;
const minLifetimeMs = 60_000;
const maxCertificates = 10;

/**
 * @param pem leaf first
 * @param roots the chain must end at one of them
 */
export function checkIssued(
  pem: string,
  order: CertificateOrder,
  roots: readonly Certificate[],
  now: Date,
): IssuedChain | { readonly problem: string } {
  let certificates: Certificate[];
  try {
    certificates = readCertificates(pem);
  } catch (error) {
    return { problem: `the issued certificate is invalid: ${messageOf(error)}` };
  }
  const [leaf, ...intermediates] = certificates;
  if (leaf === undefined) return { problem: 'the issued chain has no certificate' };
  if (intermediates.length > maxCertificates)
    return { problem: `the issued chain has more than ${maxCertificates} certificates` };
  const problem = leafProblem(leaf, order, now);
  if (problem !== undefined) return { problem: `the issued certificate ${problem}` };
  const result = findPath({ certificate: leaf, intermediates, roots, at: now });
  if ('problem' in result)
    return { problem: `the issued certificate has no valid chain to a root of the mesh: ${result.problem}` };
  const path = result.path;
  return { leaf, intermediates: path.slice(1, -1), root: path.at(-1)! };
}

function leafProblem(leaf: Certificate, order: CertificateOrder, now: Date): string | undefined {
  const { names, lifetimeMs, isForClients } = order;
  const { alternativeNames, extendedKeyUsage = [] } = leaf;
  if (!leaf.publicKey.equals(order.key)) return 'has another key than the request';
  const { uris = [], dns = [], ips = [], otherNames = 0 } = alternativeNames ?? {};
  if (
    otherNames > 0 ||
    !haveSameNames(uris, names.uris) ||
    !haveSameNames(dns, names.dns) ||
    !haveSameNames(ips, names.ips)
  ) {
    return `must have exactly the names ${[...names.uris, ...names.dns, ...names.ips].join(', ')}`;
  }
  if (leaf.basicConstraints?.isCa === true) return 'must not be a CA certificate';
  if (!extendedKeyUsage.includes(serverAuth)) return 'has no extended key usage serverAuth';
  if (isForClients && !extendedKeyUsage.includes(clientAuth)) return 'has no extended key usage clientAuth';
  const remainingMs = leaf.notAfter.getTime() - now.getTime();
  if (leaf.notBefore.getTime() > now.getTime() + toleranceMs)
    return `is not valid before ${leaf.notBefore.toISOString()}`;
  if (remainingMs < minLifetimeMs) return `expires too soon, on ${leaf.notAfter.toISOString()}`;
  if (remainingMs > lifetimeMs + toleranceMs)
    return `has a longer lifetime than the requested ${Math.round(lifetimeMs / 1_000)} s`;
  return undefined;
}

function haveSameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && new Set([...one, ...other]).size === new Set(other).size;
}
