/**
 * Checks user-provided CRLs (RFC 5280 §5) before proxies receive them: with any CRL, Envoy rejects every client unless each authority of the client's
 * chain has a valid one.
 */
import { AsnConvert } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Extension, IssuingDistributionPoint, Time } from '@peculiar/asn1-x509';
import { messageOf } from '../runtime/errors.ts';
import type { Certificate } from './certificate.ts';
import { displayNameOf } from './certificate-path.ts';
import { CertificateError, type CertificateProblem, mismatchProblem, problemOf } from './certificate-problem.ts';
import { type DerElement, derElements, firstDerElement } from './der-reader.ts';
import { pemBlocks, pemOf } from './pem.ts';
import { isValidSignature } from './signature-algorithm.ts';

export interface RevocationList {
  readonly pem: string;
  /** SHA-256 of the certificate of the signing authority. */
  readonly authority: string;
  readonly thisUpdate: Date;
  /** Envoy rejects every client from this time on; `undefined` if the list does not expire. */
  readonly nextUpdate: Date | undefined;
}

export interface RevocationLists {
  /** At most one per authority; empty if Envoy would reject every client with these lists. */
  readonly usable: readonly RevocationList[];
  readonly problems: readonly CertificateProblem[];
  /** Next time at which a list becomes valid or expires. */
  readonly recheckAt?: Date | undefined;
}

export const crlExpiryWarningDays = 7;

const dayMs = 24 * 60 * 60 * 1_000;
const crlLabel = 'X509 CRL';
const issuingDistributionPoint = '2.5.29.28';
const tags = { integer: 0x02, bitString: 0x03, sequence: 0x30, utcTime: 0x17, generalizedTime: 0x18, extensions: 0xa0 };

/**
 * @param authorities every certificate of the configured CA file or Secret entry
 * @param previous usable lists of an earlier text, kept for an authority without a usable list in this text
 */
export function checkRevocationLists(
  text: string,
  authorities: readonly Certificate[],
  currentDate: Date,
  previous: readonly RevocationList[] = [],
): RevocationLists {
  const problems: CertificateProblem[] = [];
  const futureDates: Date[] = [];
  const foundLists = listsIn(text, authorities, currentDate, problems, futureDates);
  const previousLists = previous.flatMap(({ pem }) => listsIn(pem, authorities, currentDate, []));
  const usableByAuthority = new Map<string, RevocationList>();
  for (const list of [...previousLists, ...foundLists]) {
    // A list in the text has priority over a previous one, and a newer list over an older one.
    const previousList = usableByAuthority.get(list.authority);
    if (
      previousList === undefined ||
      !foundLists.includes(previousList) ||
      list.thisUpdate >= previousList.thisUpdate
    ) {
      usableByAuthority.set(list.authority, list);
    }
  }
  const gaps = authorities.map((authority) =>
    missingListOf(authority, { authorities, found: foundLists, usable: [...usableByAuthority.values()] }),
  );
  problems.push(...gaps.flatMap((gap) => gap?.problem ?? []));
  const isComplete = (authority: Certificate): boolean =>
    chainOf(authority, authorities).every((issuer) => gaps[authorities.indexOf(issuer)]?.refusesClients !== true);
  const isServing = authorities
    .filter((authority) => !authorities.some((otherAuthority) => isIssuedBy(otherAuthority, authority)))
    .some(isComplete);
  const dates = [...futureDates, ...[...usableByAuthority.values()].flatMap(({ nextUpdate }) => nextUpdate ?? [])];
  const [recheckAt] = dates.sort((one, other) => one.getTime() - other.getTime());
  return { usable: isServing ? [...usableByAuthority.values()] : [], problems, ...(recheckAt && { recheckAt }) };
}

export function expiryWarning(lists: readonly RevocationList[], time: Date): CertificateProblem | undefined {
  const [first] = lists
    .flatMap(({ nextUpdate }) => nextUpdate ?? [])
    .sort((one, other) => one.getTime() - other.getTime());
  if (first === undefined || first.getTime() - time.getTime() > crlExpiryWarningDays * dayMs) return undefined;
  const verb = first <= time ? 'expired' : 'expires';
  const message = `certificate revocation list ${verb} on ${first.toISOString()}: Envoy rejects every client from then on; provide a newer list`;
  return problemOf('REVOCATION_LIST_EXPIRED', message);
}

function invalidList(message: string, cause?: unknown): CertificateError {
  return new CertificateError(problemOf('REVOCATION_LIST_INVALID', message), { cause });
}

function listsIn(
  text: string,
  authorities: readonly Certificate[],
  currentDate: Date,
  problems: CertificateProblem[],
  futureDates: Date[] = [],
): readonly RevocationList[] {
  const blocks = parseBlocks(text, problems);
  return blocks.flatMap(({ label, der }, index) => {
    const blockText = `PEM block ${index + 1}`;
    if (label !== crlLabel) {
      problems.push(mismatchProblem('REVOCATION_LIST_INVALID', blockText, `"${crlLabel}"`, `"${label}"`));
      return [];
    }
    try {
      const list = readList(der);
      if (currentDate < list.thisUpdate) futureDates.push(list.thisUpdate);
      return [
        { pem: pemOf(crlLabel, der), ...datesOf(list, currentDate), authority: signerOf(list, authorities).sha256 },
      ];
    } catch (error) {
      const { code, fields } = error instanceof CertificateError ? error : invalidList('');
      problems.push({ ...fields, code, message: `${blockText} (${crlLabel}) ${messageOf(error)}` });
      return [];
    }
  });
}

function parseBlocks(text: string, problems: CertificateProblem[]): ReturnType<typeof pemBlocks> {
  try {
    const blocks = pemBlocks(text);
    if (blocks.length === 0) {
      problems.push(problemOf('REVOCATION_LIST_INVALID', `no PEM block "${crlLabel}" found`));
    }
    return blocks;
  } catch (error) {
    problems.push(problemOf('PEM_INVALID', messageOf(error)));
    return [];
  }
}

interface CoverageGap {
  readonly problem: CertificateProblem;
  readonly refusesClients: boolean;
}

interface CheckedLists {
  readonly authorities: readonly Certificate[];
  readonly found: readonly RevocationList[];
  readonly usable: readonly RevocationList[];
}

/** Envoy checks the complete chain (`X509_V_FLAG_CRL_CHECK_ALL`), including the root. */
function missingListOf(authority: Certificate, { authorities, found, usable }: CheckedLists): CoverageGap | undefined {
  const name = displayNameOf(authority);
  if (!isRoot(authority) && !authorities.some((otherAuthority) => isIssuedBy(authority, otherAuthority))) {
    const message = `issuer of CA certificate ${name} is missing: Envoy checks revocation lists up to the root`;
    return { problem: problemOf('REVOCATION_LIST_MISSING', message, { got: name }), refusesClients: true };
  }
  // Certificates of the same authority share one CRL.
  const sameAuthorities = authorities
    .filter((candidate) => isSameAuthority(candidate, authority))
    .map(({ sha256 }) => sha256);
  const hasListAmong = (lists: readonly RevocationList[]): boolean =>
    lists.some((list) => sameAuthorities.includes(list.authority));
  if (hasListAmong(found)) return undefined;
  const refusesClients = !hasListAmong(usable);
  const effect = refusesClients ? 'Envoy would reject its clients' : 'keeping its previous list';
  const message = `no usable certificate revocation list of ${name}: ${effect}`;
  return { problem: problemOf('REVOCATION_LIST_MISSING', message, { got: name }), refusesClients };
}

function chainOf(authority: Certificate, authorities: readonly Certificate[]): readonly Certificate[] {
  const chain = [authority];
  for (const certificate of chain) {
    chain.push(...authorities.filter((candidate) => !chain.includes(candidate) && isIssuedBy(certificate, candidate)));
  }
  return chain;
}

function isRoot(certificate: Certificate): boolean {
  return certificate.x509.checkIssued(certificate.x509);
}

function isIssuedBy(certificate: Certificate, issuer: Certificate): boolean {
  return certificate !== issuer && !isRoot(certificate) && certificate.x509.checkIssued(issuer.x509);
}

function isSameAuthority(one: Certificate, other: Certificate): boolean {
  return Buffer.compare(one.subject, other.subject) === 0 && one.publicKey.equals(other.publicKey);
}

interface ParsedList {
  readonly signedBytes: Uint8Array;
  readonly issuer: Uint8Array;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date | undefined;
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

/** Parses a list without its revoked entries, because an ASN.1 schema rejects lists with thousands of them. */
function readList(der: Uint8Array): ParsedList {
  let elements: readonly DerElement[];
  let fields: readonly DerElement[];
  try {
    const listElement = firstDerElement(der);
    if (listElement.raw.length !== der.length) throw invalidList('has trailing data');
    elements = derElements(listElement.content);
    fields = derElements(elements[0]!.content);
  } catch (error) {
    throw invalidList('is not a certificate revocation list', error);
  }
  // A list of version 1 has no version field.
  const [, issuer, thisUpdate, next, ...otherFields] = fields[0]?.tag === tags.integer ? fields.slice(1) : fields;
  const isTimeElement = (element: DerElement | undefined): boolean =>
    element?.tag === tags.utcTime || element?.tag === tags.generalizedTime;
  const [, algorithm, signature] = elements;
  if (issuer?.tag !== tags.sequence || !isTimeElement(thisUpdate) || signature?.tag !== tags.bitString) {
    throw invalidList('is not a certificate revocation list');
  }
  rejectCriticalExtensions(
    [...(isTimeElement(next) ? [] : next ? [next] : []), ...otherFields].find(({ tag }) => tag === tags.extensions),
  );
  return {
    signedBytes: elements[0]!.raw,
    issuer: issuer.raw,
    thisUpdate: timeOf(thisUpdate!),
    nextUpdate: isTimeElement(next) ? timeOf(next!) : undefined,
    algorithm: AsnConvert.parse(algorithm!.raw, AlgorithmIdentifier).algorithm,
    signature: signature.content.subarray(1),
  };
}

function timeOf({ raw }: DerElement): Date {
  return AsnConvert.parse(raw, Time).getTime();
}

/** Rejects delta and indirect CRLs, which cannot replace a complete list of their issuer. */
function rejectCriticalExtensions(extensions: DerElement | undefined): void {
  if (extensions === undefined) return;
  for (const { raw } of derElements(firstDerElement(extensions.content).content)) {
    const { extnID, critical, extnValue } = AsnConvert.parse(raw, Extension);
    if (!critical) continue;
    if (extnID !== issuingDistributionPoint) throw invalidList(`has the unsupported critical extension ${extnID}`);
    const { indirectCRL } = AsnConvert.parse(extnValue.buffer, IssuingDistributionPoint);
    if (indirectCRL) throw invalidList('is an indirect list, which is not supported');
  }
}

function datesOf(
  { thisUpdate, nextUpdate }: ParsedList,
  currentDate: Date,
): Pick<RevocationList, 'thisUpdate' | 'nextUpdate'> {
  if (currentDate < thisUpdate) {
    const message = `is not valid before ${thisUpdate.toISOString()}`;
    throw new CertificateError(problemOf('REVOCATION_LIST_NOT_YET_VALID', message));
  }
  if (nextUpdate !== undefined && currentDate >= nextUpdate) {
    throw new CertificateError(problemOf('REVOCATION_LIST_EXPIRED', `expired on ${nextUpdate.toISOString()}`));
  }
  return { thisUpdate, nextUpdate };
}

function signerOf(list: ParsedList, authorities: readonly Certificate[]): Certificate {
  const authoritiesOfIssuer = authorities.filter(({ subject }) => Buffer.compare(subject, list.issuer) === 0);
  if (authoritiesOfIssuer.length === 0) throw invalidList('is not issued by any of the CA certificates');
  const signer = authoritiesOfIssuer.find(({ publicKey }) =>
    isValidSignature(list.signedBytes, list.algorithm, publicKey, list.signature),
  );
  if (signer === undefined)
    throw invalidList(`signature does not match the key of its issuer ${displayNameOf(authoritiesOfIssuer[0]!)}`);
  if (signer.keyUsage !== undefined && !signer.keyUsage.flags.has('cRLSign')) {
    throw invalidList(`is signed by ${displayNameOf(signer)}, which lacks the key usage cRLSign`);
  }
  return signer;
}
