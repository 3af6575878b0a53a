/** What a signer is asked for, and whether it is what came: a signer of somebody else's may sign anything. */
import { type Certificate, readCertificates } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { CertificateOrder, IssuedCertificate } from '../issuing/registrar.ts';

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';
/** A signer counts from when it signs, in whole seconds, and may have another clock. */
const toleranceMs = 5 * 60_000;
/** With no more than this left it is of no use to anybody. */
const leastLifeMs = 60_000;
const mostCertificates = 10;

/**
 * @param pem the leaf first
 * @param roots that it must lead to one of
 */
export function judged(
  pem: string,
  order: CertificateOrder,
  roots: readonly Certificate[],
  now: Date,
): IssuedCertificate | { readonly problem: string } {
  let certificates: Certificate[];
  try {
    certificates = readCertificates(pem);
  } catch (error) {
    return { problem: `the issued certificate is invalid: ${messageOf(error)}` };
  }
  const [leaf, ...between] = certificates;
  if (leaf === undefined) return { problem: 'the issued chain has no certificate' };
  if (between.length > mostCertificates)
    return { problem: `the issued chain has more than ${mostCertificates} certificates` };
  const problem = leafProblem(leaf, order, now);
  if (problem !== undefined) return { problem: `the issued certificate ${problem}` };
  const answer = findPath({ certificate: leaf, intermediates: between, roots, at: now });
  if ('problem' in answer)
    return { problem: `the issued certificate has no valid chain to a root of the mesh: ${answer.problem}` };
  const path = answer.path;
  return { leaf, between: path.slice(1, -1), root: path.at(-1)! };
}

function leafProblem(leaf: Certificate, order: CertificateOrder, now: Date): string | undefined {
  const { names, lifetimeMs, isForClients } = order;
  const { alternativeNames, extendedKeyUsage = [] } = leaf;
  if (!leaf.publicKey.equals(order.key)) return 'has another key than the request';
  const { uris = [], dns = [], ips = [], others = 0 } = alternativeNames ?? {};
  if (others > 0 || !sameNames(uris, names.uris) || !sameNames(dns, names.dns) || !sameNames(ips, names.ips)) {
    return `must have exactly the names ${[...names.uris, ...names.dns, ...names.ips].join(', ')}`;
  }
  if (leaf.basicConstraints?.isCa === true) return 'must not be a CA certificate';
  if (!extendedKeyUsage.includes(serverAuth)) return 'has no extended key usage serverAuth';
  if (isForClients && !extendedKeyUsage.includes(clientAuth)) return 'has no extended key usage clientAuth';
  const left = leaf.notAfter.getTime() - now.getTime();
  if (leaf.notBefore.getTime() > now.getTime() + toleranceMs)
    return `is not valid before ${leaf.notBefore.toISOString()}`;
  if (left < leastLifeMs) return `expires too soon, on ${leaf.notAfter.toISOString()}`;
  if (left > lifetimeMs + toleranceMs)
    return `has a longer lifetime than the requested ${Math.round(lifetimeMs / 1_000)} s`;
  return undefined;
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && new Set([...one, ...other]).size === new Set(other).size;
}
