/** If Envoy has any CRL, it rejects certificates of roots without one, so each authority with a distributed root has a CRL. */
import { backdatingMs, issueRevocationList } from '../../../identity/issue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import type { RevokedCredentials } from './revoked-file.ts';

/**
 * PEM CRLs. Only the root can sign its CRL, so a plugged-in CA may provide one. CRLs expire with their authority, because Envoy rejects every client
 * if one is expired.
 */
export function revocationListsOf(
  authorities: readonly AuthorityMaterial[],
  { certificates, modifiedAt }: RevokedCredentials,
  now: Date,
): string {
  // The serial numbers are random 127-bit numbers, so those of other authorities match no certificate.
  const revokedEntries = [...certificates]
    .sort()
    .map((serialNumber) => ({ serialNumber: padToEvenLength(serialNumber), at: modifiedAt }));
  const commonFields = { thisUpdate: new Date(now.getTime() - backdatingMs), number: Math.floor(now.getTime() / 1000) };
  return authorities
    .map(({ revocationLists, issuer, notAfter }) => {
      // A CRL of the operator takes precedence.
      if (revocationLists !== undefined) return `${revocationLists.trimEnd()}\n`;
      return issueRevocationList(issuer, { ...commonFields, nextUpdate: notAfter, revoked: revokedEntries });
    })
    .join('');
}

function padToEvenLength(hex: string): string {
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
