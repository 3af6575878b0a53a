import { createPrivateKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { type Certificate, readCertificates, rootKeyOf } from '../../identity/certificate.ts';
import { displayNameOf, earliestExpiryOf, findPath, issuerProblem } from '../../identity/certificate-path.ts';
import type { Issuer } from '../../identity/issue.ts';
import { keyProblem } from '../../identity/signature-algorithm.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../../runtime/files/bounded-file.ts';
import { readConsistentlySync } from '../../runtime/files/read-together.ts';

export interface AuthorityMaterial {
  /** Hexadecimal SHA-256 of the signing certificate. */
  readonly id: string;
  readonly issuer: Issuer;
  /** From the signing certificate to the root. Only the root if it is self-signed. */
  readonly path: readonly Certificate[];
  readonly root: Certificate;
  /** Latest expiry of issued certificates. */
  readonly notAfter: Date;
  /** PEM CRLs of the signing certificate's issuer or of several CAs. */
  readonly revocationLists?: string;
}

/** The root's ID, with which the ledger records certificates, and the authority's ID, which earlier versions used. */
export function ledgerIdsOf({ id, root }: Pick<AuthorityMaterial, 'id' | 'root'>): [AuthorityId, ...AuthorityId[]] {
  return [rootKeyOf(root), id];
}

interface FileNames {
  readonly key: string;
  /** The signing certificate, optionally followed by intermediates. */
  readonly certificate: string;
  readonly root: string;
  readonly chain?: string;
}

/** File names that Istio uses, and the keys of a `kubernetes.io/tls` Secret. */
const fileNameConventions: readonly FileNames[] = [
  { key: 'ca-key.pem', certificate: 'ca-cert.pem', root: 'root-cert.pem', chain: 'cert-chain.pem' },
  { key: 'tls.key', certificate: 'tls.crt', root: 'ca.crt' },
];
const revocationFile = 'ca-crl.pem';

const maxFileBytes = 1024 * 1024;

export interface NamedTexts {
  has(name: string): boolean;
  /** @throws ChartpilotError FILE_UNREADABLE */
  text(name: string): string;
  /** A path or a Secret key, for errors. */
  locationOf(name: string): string;
}

export function hasPluggedInCa(directory: string): boolean {
  return fileNameConventions.some(({ key, certificate }) =>
    [key, certificate].some((name) => existsSync(join(directory, name))),
  );
}

/**
 * Verifies that the CA can sign: valid PEM, a matching key, and a chain that is valid at `now`.
 *
 * @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID, with the file
 */
export function readPluggedInCa(directory: string, now: Date): AuthorityMaterial {
  const locationOf = (name: string): string => join(directory, name);
  return readConsistentlySync((resolvePath) => {
    const resolveLocation = (name: string): string => resolvePath(locationOf(name));
    const hasFile = (name: string): boolean => existsSync(resolveLocation(name));
    return parsePluggedInCa({ has: hasFile, text: (name) => textOf(resolveLocation(name)), locationOf }, now).material;
  });
}

export interface PluggedInCa {
  readonly material: AuthorityMaterial;
  readonly roots: readonly Certificate[];
}

/** @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID, with the file or key */
export function parsePluggedInCa(texts: NamedTexts, now: Date): PluggedInCa {
  const names = fileNameConventions.find(({ key }) => texts.has(key)) ?? fileNameConventions[0]!;
  const certificatesOf = (name: string): Certificate[] => parseNamed(texts, name, readCertificates);
  const certificatesOfFile = certificatesOf(names.certificate);
  const roots = certificatesOf(names.root);
  const chain = names.chain !== undefined && texts.has(names.chain) ? certificatesOf(names.chain) : [];
  const [certificate, ...otherCertificates] = certificatesOfFile;
  const privateKey = parseNamed(texts, names.key, (text) => createPrivateKey(text));
  if (!certificate!.x509.checkPrivateKey(privateKey)) {
    throw invalidFile(
      texts.locationOf(names.key),
      `does not match the certificate in ${texts.locationOf(names.certificate)}`,
    );
  }
  const lists = texts.has(revocationFile) ? { revocationLists: texts.text(revocationFile) } : {};
  try {
    const material = buildAuthorityMaterial(
      { certificate: certificate!, privateKey },
      [...otherCertificates, ...chain],
      roots,
      now,
    );
    return { material: { ...material, ...lists }, roots };
  } catch (error) {
    throw invalidFile(texts.locationOf(names.certificate), messageOf(error), error);
  }
}

/**
 * @param intermediates in any order
 * @param roots the chain must end at one of these
 * @throws Error if the issuer cannot sign at `now`
 */
export function buildAuthorityMaterial(
  issuer: Issuer,
  intermediates: readonly Certificate[],
  roots: readonly Certificate[],
  createdAt: Date,
): AuthorityMaterial {
  const { certificate } = issuer;
  const problem = issuerProblem(certificate) ?? keyProblem(certificate.publicKey);
  if (problem !== undefined) throw new Error(`${displayNameOf(certificate)} ${problem.message}`);
  const result = findPath({ certificate, intermediates, roots, at: createdAt });
  if ('problem' in result)
    throw new Error(`${displayNameOf(certificate)} has no valid chain to a root certificate: ${result.problem}`);
  const { path } = result;
  return {
    id: certificate.subjectKeyId ?? certificate.sha256,
    issuer,
    path,
    root: path.at(-1)!,
    notAfter: earliestExpiryOf(path),
  };
}

function parseNamed<T>(texts: NamedTexts, name: string, parse: (text: string) => T): T {
  const text = texts.text(name);
  try {
    return parse(text);
  } catch (error) {
    throw invalidFile(texts.locationOf(name), `is not valid PEM: ${messageOf(error)}`, error);
  }
}

function textOf(file: string): string {
  try {
    return readBoundedText(file, maxFileBytes);
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${file}: ${messageOf(error)}`, { cause: error });
  }
}

function invalidFile(file: string, reason: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${file} ${reason}`, cause === undefined ? {} : { cause });
}
