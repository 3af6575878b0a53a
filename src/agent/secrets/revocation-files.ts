/** Lists (`caCrl`) are verified before Envoy receives them, because with an unusable list Envoy would reject each peer. */
import { readCertificates } from '../../identity/certificate.ts';
import { problemTexts } from '../../identity/certificate-problem.ts';
import { checkRevocationLists, expiryWarning, type RevocationList } from '../../identity/revocation-list.ts';
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import { readConsistently } from '../../runtime/files/read-together.ts';
import { parseCertificates } from '../identity/root-set.ts';
import { contentOf, SecretFileError } from './secret-files.ts';

export interface RevocationFiles {
  readonly roots: string;
  readonly crl: string;
}

/** A warning does not prevent the use of the file. */
export interface RevocationWarning {
  readonly file: string;
  readonly code: CertificateCode;
  readonly reason: string;
}

export interface RootsWithLists {
  readonly roots: readonly string[];
  /** At least one list. An authority without a usable list keeps its previous list if that is usable. */
  readonly lists: readonly RevocationList[];
  readonly warnings: readonly RevocationWarning[];
  /** `null` if no list expires. */
  readonly endsAtMs: number | null;
}

/** @throws SecretFileError with path and reason if a file cannot be read, or if its lists alone would reject each peer */
export function readRootsWithLists(
  files: RevocationFiles,
  previousLists: readonly RevocationList[],
  nowMs: number,
): Promise<RootsWithLists> {
  return readConsistently(async (resolvePath) => {
    const rootsContent = await contentOf(files.roots, await resolvePath(files.roots));
    const listContent = await contentOf(files.crl, await resolvePath(files.crl));
    const roots = parseCertificates(rootsContent);
    if (roots.length === 0)
      throw new SecretFileError('CERTIFICATE_MISSING', files.roots, 'contains no valid PEM certificate');
    const authorities = readCertificates(roots.join(''));
    const currentDate = new Date(nowMs);
    const text = listContent.toString('latin1');
    const listResult = checkRevocationLists(text, authorities, currentDate);
    // Keep the current roots with their lists, because these lists do not match the new roots.
    if (listResult.usable.length === 0) {
      const code = listResult.problems[0]?.code ?? 'REVOCATION_LIST_INVALID';
      throw new SecretFileError(code, files.crl, `: ${problemTexts(listResult.problems)}`);
    }
    const { usable, problems } = checkRevocationLists(text, authorities, currentDate, previousLists);
    const expiry = expiryWarning(usable, currentDate);
    const reasons = [...problems, ...(expiry === undefined ? [] : [expiry])];
    const warnings = reasons.map(({ code, message }) => ({ file: files.crl, code, reason: message }));
    const expiryTimes = usable.flatMap(({ nextUpdate }) => nextUpdate?.getTime() ?? []);
    return { roots, lists: usable, warnings, endsAtMs: expiryTimes.length === 0 ? null : Math.min(...expiryTimes) };
  });
}
