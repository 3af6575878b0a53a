/** Envoy presents an expired workload certificate, and peers reject it. */
import { X509Certificate } from 'node:crypto';
import { identityName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { SecretVault } from './secret-vault.ts';

/**
 * @param nowMs since 1970
 * @returns the problem; `undefined` if the certificate is valid, or without one
 */
export function certificateDateProblem(vault: Pick<SecretVault, 'newestPair'>, nowMs: number): string | undefined {
  const pair = vault.newestPair(identityName);
  if (pair === undefined) return undefined;
  const { validFromDate, validToDate } = new X509Certificate(pair.chain);
  if (nowMs >= validToDate.getTime()) return `workload certificate expired on ${validToDate.toISOString()}`;
  if (nowMs < validFromDate.getTime()) return `workload certificate is not valid before ${validFromDate.toISOString()}`;
  return undefined;
}
