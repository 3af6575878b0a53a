/** A certificate with all fields that verification needs: node:crypto exposes neither criticality nor key usage. */
import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate as CertificateStructure,
  ExtendedKeyUsage,
  type Extension,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
} from '@peculiar/asn1-x509';
import { messageOf } from '../runtime/errors.ts';
import { CertificateError, problemOf } from './certificate-problem.ts';
import { pemBlocks, pemOf } from './pem.ts';

export interface Certificate {
  readonly der: Uint8Array;
  readonly pem: string;
  /** SHA-256 of the DER, hexadecimal; identifies the certificate. */
  readonly sha256: string;
  readonly x509: X509Certificate;
  readonly publicKey: KeyObject;
  /** Hexadecimal, upper case, as OpenSSL prints it. */
  readonly serialNumber: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DER; names are compared by bytes. */
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly isSubjectEmpty: boolean;
  /** Hexadecimal. */
  readonly subjectKeyId: string | undefined;
  readonly authorityKeyId: string | undefined;
  readonly basicConstraints: { readonly isCa: boolean; readonly pathLength: number | undefined } | undefined;
  readonly keyUsage: { readonly flags: ReadonlySet<KeyUsageName>; readonly isCritical: boolean } | undefined;
  /** Object identifiers. */
  readonly extendedKeyUsage: readonly string[] | undefined;
  readonly alternativeNames: AlternativeNames | undefined;
  /** Object identifiers of critical extensions that are not implemented; such a certificate must be rejected. */
  readonly unknownCritical: readonly string[];
}

/** Identifies a root by name and key, so a root renewed with the same key keeps its identifier. */
export function rootKeyOf({ subject, publicKey }: Pick<Certificate, 'subject' | 'publicKey'>): string {
  const key = publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(subject).update(key).digest('hex');
}

export type KeyUsageName = keyof typeof KeyUsageFlags;

export interface AlternativeNames {
  readonly isCritical: boolean;
  readonly uris: readonly string[];
  readonly dns: readonly string[];
  readonly ips: readonly string[];
  readonly otherNames: number;
}

/** Excludes name constraints, so a certificate with critical name constraints is rejected. */
const implementedExtensions: ReadonlySet<string> = new Set([
  id_ce_basicConstraints,
  id_ce_keyUsage,
  id_ce_extKeyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_ce_authorityKeyIdentifier,
]);

function invalidCertificate(message: string, cause?: unknown): CertificateError {
  return new CertificateError(problemOf('CERTIFICATE_INVALID', message), { cause });
}

/** Exceeds the size of any workload or authority certificate. */
const maxCertificateBytes = 64 * 1024;

/** @throws CertificateError if the certificate is invalid, repeats an extension, or has trailing bytes */
export function readCertificate(der: Uint8Array): Certificate {
  if (der.length > maxCertificateBytes)
    throw invalidCertificate(`must have at most ${maxCertificateBytes} bytes, got ${der.length}`);
  try {
    const x509 = new X509Certificate(der);
    // OpenSSL ignores trailing bytes.
    if (x509.raw.length !== der.length) throw invalidCertificate('has trailing data after the certificate');
    return certificateOf(x509, AsnConvert.parse(der, CertificateStructure));
  } catch (error) {
    if (error instanceof CertificateError) throw error;
    throw invalidCertificate(`is not an X.509 certificate: ${messageOf(error)}`, error);
  }
}

/** @throws CertificateError or PemError, also for a text without certificates */
export function readCertificates(pem: string): Certificate[] {
  const blocks = pemBlocks(pem).filter(({ label }) => label === 'CERTIFICATE');
  if (blocks.length === 0)
    throw new CertificateError(problemOf('CERTIFICATE_MISSING', 'no PEM block "CERTIFICATE" found'));
  return blocks.map(({ der }, index) => {
    try {
      return readCertificate(der);
    } catch (error) {
      throw invalidCertificate(`certificate ${index + 1} ${messageOf(error)}`, error);
    }
  });
}

function certificateOf(x509: X509Certificate, { tbsCertificate }: CertificateStructure): Certificate {
  const extensions = new Map<string, Extension>();
  for (const extension of tbsCertificate.extensions ?? []) {
    if (extensions.has(extension.extnID)) throw invalidCertificate(`has duplicate extension ${extension.extnID}`);
    extensions.set(extension.extnID, extension);
  }
  const der = new Uint8Array(x509.raw);
  const constraints = valueOf(extensions, id_ce_basicConstraints, BasicConstraints);
  const usage = valueOf(extensions, id_ce_keyUsage, KeyUsage);
  const extendedKeyUsages = valueOf(extensions, id_ce_extKeyUsage, ExtendedKeyUsage);
  const names = valueOf(extensions, id_ce_subjectAltName, SubjectAlternativeName);
  const subjectKey = valueOf(extensions, id_ce_subjectKeyIdentifier, SubjectKeyIdentifier);
  const authorityKey = valueOf(extensions, id_ce_authorityKeyIdentifier, AuthorityKeyIdentifier);
  return {
    der,
    pem: pemOf('CERTIFICATE', der),
    sha256: createHash('sha256').update(der).digest('hex'),
    x509,
    publicKey: x509.publicKey,
    serialNumber: x509.serialNumber,
    notBefore: x509.validFromDate,
    notAfter: x509.validToDate,
    subject: new Uint8Array(AsnConvert.serialize(tbsCertificate.subject)),
    issuer: new Uint8Array(AsnConvert.serialize(tbsCertificate.issuer)),
    isSubjectEmpty: tbsCertificate.subject.length === 0,
    subjectKeyId: subjectKey && hexOf(subjectKey),
    authorityKeyId: authorityKey?.keyIdentifier && hexOf(authorityKey.keyIdentifier),
    basicConstraints: constraints && { isCa: constraints.cA, pathLength: constraints.pathLenConstraint },
    keyUsage: usage && { flags: flagsOf(usage.toNumber()), isCritical: isCritical(extensions, id_ce_keyUsage) },
    extendedKeyUsage: extendedKeyUsages && [...extendedKeyUsages],
    alternativeNames: names && alternativeNamesOf(names, isCritical(extensions, id_ce_subjectAltName)),
    unknownCritical: [...extensions.values()]
      .filter(({ critical, extnID }) => critical && !implementedExtensions.has(extnID))
      .map(({ extnID }) => extnID),
  };
}

function valueOf<T>(extensions: ReadonlyMap<string, Extension>, id: string, structure: new () => T): T | undefined {
  const extension = extensions.get(id);
  return extension && AsnConvert.parse(extension.extnValue.buffer, structure);
}

function isCritical(extensions: ReadonlyMap<string, Extension>, id: string): boolean {
  return extensions.get(id)?.critical === true;
}

function flagsOf(bits: number): ReadonlySet<KeyUsageName> {
  const names = Object.keys(KeyUsageFlags).filter((name) => Number.isNaN(Number(name))) as KeyUsageName[];
  return new Set(names.filter((name) => (bits & KeyUsageFlags[name]) !== 0));
}

export function alternativeNamesOf(names: SubjectAlternativeName, isCritical: boolean): AlternativeNames {
  const uris: string[] = [];
  const dns: string[] = [];
  const ips: string[] = [];
  let otherNames = 0;
  for (const { uniformResourceIdentifier: uri, dNSName, iPAddress } of names) {
    if (uri !== undefined) uris.push(uri);
    else if (dNSName !== undefined) dns.push(dNSName);
    else if (iPAddress !== undefined) ips.push(iPAddress);
    else otherNames++;
  }
  return { isCritical: isCritical, uris, dns, ips, otherNames };
}

function hexOf({ buffer }: { readonly buffer: ArrayBuffer }): string {
  return Buffer.from(buffer).toString('hex');
}
