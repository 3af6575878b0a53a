/**
 * Lists of certificates that were taken back, one of each authority whose root is given out: as soon as there is a list of one
 * root, whatever hangs on a root without a list is refused (spec/identity.md §1 fact 5). An empty one is a list.
 */
import { backdatedMs, issueRevocationList } from '../../../identity/issue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import type { Revoked } from './revoked-file.ts';

/**
 * PEM. An authority that a person plugged in may bring lists of its own: that of its root only the root can sign. A list ends with its
 * authority: one that had ended would refuse everybody.
 */
export function revocationListsOf(
  authorities: readonly AuthorityMaterial[],
  { certificates, at }: Revoked,
  now: Date,
): string {
  // Serial numbers are of 127 bits that nobody could guess: those of another authority are nobody's here.
  const revoked = [...certificates].sort().map((serialNumber) => ({ serialNumber: evenDigits(serialNumber), at }));
  const life = { thisUpdate: new Date(now.getTime() - backdatedMs), number: Math.floor(now.getTime() / 1000) };
  return authorities
    .map(({ revocationLists, issuer, notAfter }) => {
      // A list of the signing authority that the person brings is the one that counts.
      if (revocationLists !== undefined) return `${revocationLists.trimEnd()}\n`;
      return issueRevocationList(issuer, { ...life, nextUpdate: notAfter, revoked });
    })
    .join('');
}

function evenDigits(hex: string): string {
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
