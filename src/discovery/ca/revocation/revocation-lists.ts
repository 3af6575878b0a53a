/**
 * CRLs, one for each authority whose root is distributed: as soon as one root has a CRL, Envoy rejects certificates below roots without one
 * (spec/identity.md §1 fact 5). An empty list suffices.
 */
import { backdatedMs, issueRevocationList } from '../../../identity/issue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import type { Revoked } from './revoked-file.ts';

/**
 * PEM. A plugged-in CA may provide CRLs: only the root can sign that of its root. A CRL expires with its authority, because an expired one
 * rejects every client.
 */
export function revocationListsOf(
  authorities: readonly AuthorityMaterial[],
  { certificates, at }: Revoked,
  now: Date,
): string {
  // Serial numbers are random 127-bit numbers, so those of another authority match nothing here.
  const revoked = [...certificates].sort().map((serialNumber) => ({ serialNumber: evenDigits(serialNumber), at }));
  const life = { thisUpdate: new Date(now.getTime() - backdatedMs), number: Math.floor(now.getTime() / 1000) };
  return authorities
    .map(({ revocationLists, issuer, notAfter }) => {
      // A provided CRL of the signing authority takes precedence.
      if (revocationLists !== undefined) return `${revocationLists.trimEnd()}\n`;
      return issueRevocationList(issuer, { ...life, nextUpdate: notAfter, revoked });
    })
    .join('');
}

function evenDigits(hex: string): string {
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
