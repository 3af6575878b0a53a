/**
 * What can be said of certificate files without Envoy: what is missing, what lies in the wrong place, which block is broken.
 * Whether Envoy takes them is Envoy's to say (certificate-verdict.ts). Never throws, never shows a file's content.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type CertificateProblem, problemOf } from '../../identity/certificate-problem.ts';
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isCertificate, isEncrypted, isPrivateKey, type PemBlock, pemBlocks } from '../identity/pem-file.ts';

/** Names under which a certificate and its key lie beside each other (spec/agent.md §3.1). */
const pairs: readonly (readonly [certificate: string, key: string])[] = [
  ['tls.crt', 'tls.key'],
  ['cert-chain.pem', 'key.pem'],
];

/** What an Envoy may be given: a certificate chain with its key, or certificates to trust. By file name. */
export type CertificateSet = { readonly certificate: string; readonly key: string } | { readonly roots: string };

/** What the files of one directory amount to. */
export interface CertificateFindings {
  /** Why they would not do, by file and block. */
  readonly problems: CertificateProblem[];
  readonly sets: CertificateSet[];
}

interface ReadFile {
  readonly name: string;
  readonly certificates: readonly PemBlock[];
  readonly keys: readonly PemBlock[];
  /** The first certificate; undefined when there is none that can be read. */
  readonly first: X509Certificate | undefined;
  /** The first private key. */
  readonly key: KeyObject | undefined;
  readonly problems: CertificateProblem[];
}

/**
 * What the files of one directory hold, and why they would not do, as far as that can be told without Envoy.
 *
 * @param contents by name; every name is one of a certificate or a key
 */
export function inspectCertificates(contents: ReadonlyMap<string, Buffer>): CertificateFindings {
  const files = new Map([...contents].map(([name, content]) => [name, read(name, content)] as const));
  const broken = [...files.values()].flatMap(({ problems }) => problems);
  if (broken.length > 0) return { problems: broken, sets: [] };
  const problems = pairs.flatMap(([certificate, key]) => pairProblem(files, certificate, key));
  return { problems, sets: problems.length > 0 ? [] : setsOf([...files.values()]) };
}

function read(name: string, content: Buffer): ReadFile {
  const blocks = pemBlocks(content);
  const certificates = blocks.filter(isCertificate);
  const keys = blocks.filter(isPrivateKey);
  const problems: CertificateProblem[] = [];
  if (blocks.length === 0) {
    problems.push(problemOf('PEM_INVALID', `${name}: ${whyNoPem(content)}`, { path: name }));
  }
  const parsed = blocks.map((block) => parse(name, block, problems));
  return {
    name,
    certificates,
    keys,
    first: parsed.find((one) => one instanceof X509Certificate),
    key: parsed.find((one): one is KeyObject => one !== undefined && !(one instanceof X509Certificate)),
    problems,
  };
}

function whyNoPem(content: Buffer): string {
  if (content.length === 0) return 'file is empty';
  // A SEQUENCE of ASN.1: how every DER certificate and key begins.
  if (content[0] === 0x30) return 'no PEM certificate or private key found, the file is DER';
  return 'no PEM certificate or private key found';
}

function parse(name: string, block: PemBlock, problems: CertificateProblem[]): X509Certificate | KeyObject | undefined {
  if (!isCertificate(block) && !isPrivateKey(block)) return undefined;
  const where = `${name}: block ${block.number} (${block.label})`;
  const code = isCertificate(block) ? 'CERTIFICATE_INVALID' : 'PRIVATE_KEY_INVALID';
  if (!block.isWhole) problems.push(problemOf('PEM_INVALID', `${where} is not terminated`, { path: name }));
  else if (isPrivateKey(block) && isEncrypted(block)) {
    problems.push(problemOf(code, `${where} is encrypted, which Envoy does not support here`, { path: name }));
  } else {
    try {
      // A block of OpenSSL's own: Envoy takes it, Node does not.
      if (block.label === 'TRUSTED CERTIFICATE') return undefined;
      return isCertificate(block) ? new X509Certificate(block.text) : createPrivateKey(block.text);
    } catch (error) {
      problems.push(problemOf(code, `${where} cannot be parsed: ${messageOf(error)}`, { path: name }));
    }
  }
  return undefined;
}

function pairProblem(files: ReadonlyMap<string, ReadFile>, certificate: string, key: string): CertificateProblem[] {
  const chain = files.get(certificate);
  const secret = files.get(key);
  if (chain === undefined && secret === undefined) return [];
  if (chain === undefined) return [missing('CERTIFICATE_MISSING', certificate, key)];
  if (secret === undefined) return [missing('PRIVATE_KEY_INVALID', key, certificate)];
  const misplaced = [
    ...(chain.certificates.length > 0
      ? []
      : [misplacedIn('CERTIFICATE_MISSING', certificate, 'a certificate', heldBy(chain))]),
    ...(secret.keys.length > 0 ? [] : [misplacedIn('PRIVATE_KEY_INVALID', key, 'a private key', heldBy(secret))]),
  ];
  if (misplaced.length > 0) return misplaced;
  if (chain.first === undefined || secret.key === undefined || isKeyOf(secret.key, chain.first)) return [];
  const other = chain.certificates.findIndex(({ text }) => isKeyOf(secret.key!, text));
  const place =
    other > 0 ? ` but of the certificate in block ${chain.certificates[other]!.number}, which must come first` : '';
  const message = `${key} is not the private key of ${certificate}${place}`;
  return [problemOf('PRIVATE_KEY_MISMATCH', message, { path: key })];
}

function missing(code: CertificateCode, file: string, other: string): CertificateProblem {
  return problemOf(code, `${file} is missing beside ${other}`, { path: file });
}

function misplacedIn(code: CertificateCode, file: string, expected: string, got: string): CertificateProblem {
  return problemOf(code, `${file} must contain ${expected}, got ${got}`, { path: file, expected, got });
}

function heldBy({ certificates, keys }: ReadFile): string {
  if (keys.length > 0) return 'a private key';
  return certificates.length > 0 ? 'a certificate' : 'neither';
}

function isKeyOf(key: KeyObject, certificate: X509Certificate | string): boolean {
  try {
    return (typeof certificate === 'string' ? new X509Certificate(certificate) : certificate).checkPrivateKey(key);
  } catch {
    return false;
  }
}

/** The known pairs; each other key with the file whose first certificate it is the key of; what is left are roots. */
function setsOf(files: readonly ReadFile[]): CertificateSet[] {
  const paired = files.flatMap((file) => {
    if (file.keys.length === 0) return [];
    const known = pairs.find(([, key]) => key === file.name)?.[0];
    const key = file.key;
    const of = known ?? (key && files.find(({ first }) => first !== undefined && isKeyOf(key, first))?.name);
    return of === undefined ? [] : [{ certificate: of, key: file.name }];
  });
  const chains = new Set(paired.map(({ certificate }) => certificate));
  const roots = files.filter(({ name, certificates }) => certificates.length > 0 && !chains.has(name));
  return [...paired, ...roots.map(({ name }) => ({ roots: name }))];
}

/** What Envoy's own words leave out: what kind of key each certificate of a file has. */
export function describeCertificates(content: Buffer): string {
  const described = pemBlocks(content)
    .filter(isCertificate)
    .map(({ number, text }) => `block ${number}: ${keyKindOf(text)}`);
  return described.slice(0, 5).join(', ');
}

function keyKindOf(text: string): string {
  try {
    const { asymmetricKeyType: type = 'unknown', asymmetricKeyDetails: details } = new X509Certificate(text).publicKey;
    return [type.toUpperCase(), details?.namedCurve ?? (details?.modulusLength && `${details.modulusLength} bits`)]
      .filter(Boolean)
      .join(' ');
  } catch {
    return 'invalid key';
  }
}
