/** Finds problems without Envoy, which validates the rest (certificate-validation.ts). Never reports a file's content. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type CertificateProblem, problemOf } from '../../identity/certificate-problem.ts';
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isCertificate, isEncrypted, isPrivateKey, type PemFileBlock, pemBlocks } from '../identity/pem-file.ts';

const knownPairs: readonly (readonly [certificate: string, key: string])[] = [
  ['tls.crt', 'tls.key'],
  ['cert-chain.pem', 'key.pem'],
];

export type CertificateSet = { readonly certificate: string; readonly key: string } | { readonly roots: string };

export interface CertificateFindings {
  readonly problems: CertificateProblem[];
  readonly sets: CertificateSet[];
}

interface ReadFile {
  readonly name: string;
  readonly certificates: readonly PemFileBlock[];
  readonly keys: readonly PemFileBlock[];
  readonly firstCertificate: X509Certificate | undefined;
  readonly key: KeyObject | undefined;
  readonly problems: CertificateProblem[];
}

export function inspectCertificates(contents: ReadonlyMap<string, Buffer>): CertificateFindings {
  const files = new Map([...contents].map(([name, content]) => [name, parseFile(name, content)] as const));
  const fileProblems = [...files.values()].flatMap(({ problems }) => problems);
  if (fileProblems.length > 0) return { problems: fileProblems, sets: [] };
  const problems = knownPairs.flatMap(([certificate, key]) => pairProblem(files, certificate, key));
  return { problems, sets: problems.length > 0 ? [] : setsOf([...files.values()]) };
}

function parseFile(name: string, content: Buffer): ReadFile {
  const blocks = pemBlocks(content);
  const certificates = blocks.filter(isCertificate);
  const keys = blocks.filter(isPrivateKey);
  const problems: CertificateProblem[] = [];
  if (blocks.length === 0) {
    problems.push(problemOf('PEM_INVALID', `${name}: ${whyNoPem(content)}`, { path: name }));
  }
  const parsedBlocks = blocks.map((block) => parse(name, block, problems));
  return {
    name,
    certificates,
    keys,
    firstCertificate: parsedBlocks.find((item) => item instanceof X509Certificate),
    key: parsedBlocks.find((item): item is KeyObject => item !== undefined && !(item instanceof X509Certificate)),
    problems,
  };
}

function whyNoPem(content: Buffer): string {
  if (content.length === 0) return 'file is empty';
  // DER certificates and keys begin with an ASN.1 SEQUENCE.
  if (content[0] === 0x30) return 'no PEM certificate or private key found, the file is DER';
  return 'no PEM certificate or private key found';
}

function parse(
  name: string,
  block: PemFileBlock,
  problems: CertificateProblem[],
): X509Certificate | KeyObject | undefined {
  if (!isCertificate(block) && !isPrivateKey(block)) return undefined;
  const blockText = `${name}: block ${block.number} (${block.label})`;
  const code = isCertificate(block) ? 'CERTIFICATE_INVALID' : 'PRIVATE_KEY_INVALID';
  if (!block.isWhole) problems.push(problemOf('PEM_INVALID', `${blockText} is not terminated`, { path: name }));
  else if (isPrivateKey(block) && isEncrypted(block)) {
    problems.push(problemOf(code, `${blockText} is encrypted, which Envoy does not support here`, { path: name }));
  } else {
    try {
      // Envoy accepts this label of OpenSSL, and Node does not.
      if (block.label === 'TRUSTED CERTIFICATE') return undefined;
      return isCertificate(block) ? new X509Certificate(block.text) : createPrivateKey(block.text);
    } catch (error) {
      problems.push(problemOf(code, `${blockText} cannot be parsed: ${messageOf(error)}`, { path: name }));
    }
  }
  return undefined;
}

function pairProblem(files: ReadonlyMap<string, ReadFile>, certificate: string, key: string): CertificateProblem[] {
  const chain = files.get(certificate);
  const secret = files.get(key);
  if (chain === undefined && secret === undefined) return [];
  if (chain === undefined) return [missingFile('CERTIFICATE_MISSING', certificate, key)];
  if (secret === undefined) return [missingFile('PRIVATE_KEY_INVALID', key, certificate)];
  const misplacedProblems = [
    ...(chain.certificates.length > 0
      ? []
      : [misplacedProblem('CERTIFICATE_MISSING', certificate, 'a certificate', describeContent(chain))]),
    ...(secret.keys.length > 0
      ? []
      : [misplacedProblem('PRIVATE_KEY_INVALID', key, 'a private key', describeContent(secret))]),
  ];
  if (misplacedProblems.length > 0) return misplacedProblems;
  if (
    chain.firstCertificate === undefined ||
    secret.key === undefined ||
    matchesKey(secret.key, chain.firstCertificate)
  )
    return [];
  const matchingIndex = chain.certificates.findIndex(({ text }) => matchesKey(secret.key!, text));
  const location =
    matchingIndex > 0
      ? ` but of the certificate in block ${chain.certificates[matchingIndex]!.number}, which must come first`
      : '';
  const message = `${key} is not the private key of ${certificate}${location}`;
  return [problemOf('PRIVATE_KEY_MISMATCH', message, { path: key })];
}

function missingFile(code: CertificateCode, file: string, other: string): CertificateProblem {
  return problemOf(code, `${file} is missing beside ${other}`, { path: file });
}

function misplacedProblem(code: CertificateCode, file: string, expected: string, actual: string): CertificateProblem {
  return problemOf(code, `${file} must contain ${expected}, got ${actual}`, { path: file, expected, got: actual });
}

function describeContent({ certificates, keys }: ReadFile): string {
  if (keys.length > 0) return 'a private key';
  return certificates.length > 0 ? 'a certificate' : 'neither';
}

function matchesKey(key: KeyObject, certificate: X509Certificate | string): boolean {
  try {
    return (typeof certificate === 'string' ? new X509Certificate(certificate) : certificate).checkPrivateKey(key);
  } catch {
    return false;
  }
}

/**
 * Pairs each key with the certificate of its known file name, or with the file whose first certificate matches the key. Remaining files are roots.
 */
function setsOf(files: readonly ReadFile[]): CertificateSet[] {
  const pairedSets = files.flatMap((file) => {
    if (file.keys.length === 0) return [];
    const pairedCertificate = knownPairs.find(([, key]) => key === file.name)?.[0];
    const key = file.key;
    const of =
      pairedCertificate ??
      (key &&
        files.find(({ firstCertificate }) => firstCertificate !== undefined && matchesKey(key, firstCertificate))
          ?.name);
    return of === undefined ? [] : [{ certificate: of, key: file.name }];
  });
  const chains = new Set(pairedSets.map(({ certificate }) => certificate));
  const roots = files.filter(({ name, certificates }) => certificates.length > 0 && !chains.has(name));
  return [...pairedSets, ...roots.map(({ name }) => ({ roots: name }))];
}

/** The key type of each certificate in a file, which Envoy's message lacks. */
export function describeCertificates(content: Buffer): string {
  const blockTexts = pemBlocks(content)
    .filter(isCertificate)
    .map(({ number, text }) => `block ${number}: ${keyKindOf(text)}`);
  return blockTexts.slice(0, 5).join(', ');
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
