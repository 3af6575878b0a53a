/** What a signer is asked for, and whether it is what came: a signer of somebody else's may sign anything. */
import { type Certificate, readCertificates } from '../../identity/certificate.ts';
import { findPath } from '../../identity/certificate-path.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { CertificateOrder, IssuedCertificate } from '../authority/registrar.ts';

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
    return { problem: `what was signed cannot be read: ${messageOf(error)}` };
  }
  const [leaf, ...between] = certificates;
  if (leaf === undefined) return { problem: 'there is no certificate in what was signed' };
  if (between.length > mostCertificates) return { problem: `the chain has more than ${mostCertificates} certificates` };
  const problem = leafProblem(leaf, order, now);
  if (problem !== undefined) return { problem: `what was signed ${problem}` };
  const answer = findPath({ certificate: leaf, intermediates: between, roots, at: now });
  if ('problem' in answer) return { problem: `what was signed does not lead to a root of the mesh: ${answer.problem}` };
  const path = answer.path;
  return { leaf, between: path.slice(1, -1), root: path.at(-1)! };
}

function leafProblem(leaf: Certificate, order: CertificateOrder, now: Date): string | undefined {
  const { names, lifetimeMs, isForClients } = order;
  const { alternativeNames, extendedKeyUsage = [] } = leaf;
  if (!leaf.publicKey.equals(order.key)) return 'is for another key';
  const { uris = [], dns = [], ips = [], others = 0 } = alternativeNames ?? {};
  if (others > 0 || !sameNames(uris, names.uris) || !sameNames(dns, names.dns) || !sameNames(ips, names.ips)) {
    return `has other names than ${[...names.uris, ...names.dns, ...names.ips].join(', ')}`;
  }
  if (leaf.basicConstraints?.isCa === true) return 'is the certificate of an authority';
  if (!extendedKeyUsage.includes(serverAuth)) return 'is not for servers';
  if (isForClients && !extendedKeyUsage.includes(clientAuth)) return 'is not for clients';
  const left = leaf.notAfter.getTime() - now.getTime();
  if (leaf.notBefore.getTime() > now.getTime() + toleranceMs) return 'does not hold yet';
  if (left < leastLifeMs) return `ends on ${leaf.notAfter.toISOString()}`;
  if (left > lifetimeMs + toleranceMs)
    return `lasts longer than the ${Math.round(lifetimeMs / 1_000)} s that were asked for`;
  return undefined;
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && new Set([...one, ...other]).size === new Set(other).size;
}
