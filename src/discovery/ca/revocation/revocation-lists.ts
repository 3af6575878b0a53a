/**
 * A CRL for each authority with a distributed root: with one CRL, Envoy rejects certificates of roots without one (spec/identity.md §1 fact 5). A
 * list may be empty.
 */
import { backdatedMs, issueRevocationList } from '../../../identity/issue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import type { RevokedCredentials } from './revoked-file.ts';

/**
 * PEM. Only the root can sign its CRL, so a plugged-in CA may provide it. A CRL expires with its authority, because Envoy rejects every client with
 * an expired one.
 */
export function revocationListsOf(
  authorities: readonly AuthorityMaterial[],
  { certificates, at }: RevokedCredentials,
  now: Date,
): string {
  // Serial numbers are random 127-bit numbers, so those of other authorities match no certificate.
  const revoked = [...certificates].sort().map((serialNumber) => ({ serialNumber: evenDigits(serialNumber), at }));
  const life = { thisUpdate: new Date(now.getTime() - backdatedMs), number: Math.floor(now.getTime() / 1000) };
  return authorities
    .map(({ revocationLists, issuer, notAfter }) => {
      // A provided CRL takes precedence.
      if (revocationLists !== undefined) return `${revocationLists.trimEnd()}\n`;
      return issueRevocationList(issuer, { ...life, nextUpdate: notAfter, revoked });
    })
    .join('');
}

function evenDigits(hex: string): string {
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
