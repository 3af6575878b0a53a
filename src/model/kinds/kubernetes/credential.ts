/**
 * Reads certificates and keys from Secrets and ConfigMaps. Rejects certificates that Envoy would reject, so that an invalid Secret never replaces a
 * valid one.
 */

import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { type Either, isLeft, left, right } from 'fp-ts/lib/Either.js';
import { type Certificate, readCertificates } from '../../../identity/certificate.ts';
import { problemTexts } from '../../../identity/certificate-problem.ts';
import { certificatesIn } from '../../../identity/pem.ts';
import { checkRevocationLists, expiryWarning, type RevocationLists } from '../../../identity/revocation-list.ts';
import type { FieldError } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import type { ConfigMap } from './config-map.ts';
import { type Secret, secretBytes } from './secret.ts';

/** PEM certificate chain and private key of a server. */
export interface CredentialCertificate {
  readonly chain: Uint8Array;
  readonly privateKey: Uint8Array;
  /** DER response of the CA's OCSP responder. */
  readonly ocspStaple?: Uint8Array;
}

/** PEM CA certificates that verify clients. */
export interface TrustedRoots {
  readonly certificates: Uint8Array;
  readonly crl?: Uint8Array;
}

const keyPairs = [
  ['cert', 'key'],
  ['tls.crt', 'tls.key'],
] as const;
const rootKeys = ['cacert', 'ca.crt'] as const;
const crlKeys = ['crl', 'ca.crl'] as const;

/** Envoy's minimum RSA key size. For ECDSA, Envoy accepts only the curves below (Envoy documentation, TLS, "certificate selection"). */
const minRsaBits = 2048;
const supportedCurves: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

export function serverCertificateOf(secret: Secret): Either<string, CredentialCertificate> {
  const [chainKey, privateKeyKey] =
    keyPairs.find((pair) => pair.every((key) => secretBytes(secret, key) !== undefined)) ?? keyPairs[1];
  const [chain, privateKey] = [secretBytes(secret, chainKey), secretBytes(secret, privateKeyKey)];
  if (chain === undefined || privateKey === undefined)
    return left('has no entries tls.crt and tls.key (or cert and key)');
  const problem = keyPairProblem(chain, privateKey);
  if (problem !== undefined) return left(`${chainKey} and ${privateKeyKey}: ${problem}`);
  const ocspStaple = secretBytes(secret, 'tls.ocsp-staple');
  return right({ chain, privateKey, ...(ocspStaple?.length && { ocspStaple }) });
}

/**
 * @param lists revocation lists that were already checked, possibly of an earlier version of the Secret; `null` if it has none
 * @returns left: why the Secret has no usable CA certificates. They are unusable if the Secret has only unusable revocation lists, because revoked
 * clients would be accepted.
 */
export function trustedRootsOf(
  secret: Secret,
  lists: RevocationLists | null = revocationListsOf(secret, new Date()) ?? null,
): Either<string, TrustedRoots> {
  const key = rootKeys.find((candidate) => secretBytes(secret, candidate) !== undefined);
  if (key === undefined) return left('has no entry ca.crt (or cacert)');
  const certificates = secretBytes(secret, key)!;
  const roots = checkedRoots(key, { certificates });
  if (isLeft(roots) || lists === null) return roots;
  if (lists.usable.length === 0) return left(`${crlKeyOf(secret) ?? crlKeys[1]}: ${problemTexts(lists.problems)}`);
  return right({ certificates, crl: Buffer.from(lists.usable.map(({ pem }) => pem).join('')) });
}

/**
 * Checks the revocation lists of a Secret against its CA certificates. An empty entry is a problem, because a list may have been lost.
 * @param previous lists of an earlier version of the Secret
 */
export function revocationListsOf(secret: Secret, now: Date, previous?: RevocationLists): RevocationLists | undefined {
  const crlKey = crlKeyOf(secret);
  if (crlKey === undefined) return undefined;
  const crl = secretBytes(secret, crlKey)!;
  const key = rootKeys.find((candidate) => secretBytes(secret, candidate) !== undefined);
  const authorities = key === undefined ? [] : authoritiesOf(secretBytes(secret, key)!);
  return checkRevocationLists(Buffer.from(crl).toString('latin1'), authorities, now, previous?.usable);
}

export function crlKeyOf(secret: Secret): (typeof crlKeys)[number] | undefined {
  return crlKeys.find((key) => secretBytes(secret, key) !== undefined);
}

function authoritiesOf(pem: Uint8Array): readonly Certificate[] {
  try {
    return readCertificates(Buffer.from(pem).toString('latin1'));
  } catch {
    return [];
  }
}

export function trustedRootsOfConfigMap({ data, binaryData }: ConfigMap): Either<string, TrustedRoots> {
  const key = rootKeys.find((candidate) => (data[candidate] ?? binaryData[candidate]) !== undefined);
  if (key === undefined) return left('has no entry ca.crt (or cacert)');
  const text = data[key];
  const certificates = text === undefined ? Buffer.from(binaryData[key]!, 'base64') : new TextEncoder().encode(text);
  return checkedRoots(key, { certificates });
}

/** Returns why a Secret is unusable although it seems to be a server credential. */
export function credentialWarnings(secret: Secret): FieldError[] {
  const keys = [...Object.keys(secret.data), ...Object.keys(secret.stringData)];
  const hasKeyPair = keyPairs.some((pair) => pair.every((key) => keys.includes(key)));
  const hasRoots = rootKeys.some((key) => keys.includes(key));
  const [path, now] = [Object.keys(secret.data).length > 0 ? 'data' : 'stringData', new Date()];
  const lists = hasRoots ? revocationListsOf(secret, now) : undefined;
  const roots = hasRoots ? [trustedRootsOf(secret, lists ?? null)] : [];
  const decodedParts = [...(hasKeyPair ? [serverCertificateOf(secret)] : []), ...roots];
  return [
    ...decodedParts.flatMap((readResult) =>
      isLeft(readResult)
        ? [violation.fieldError(path, violation.doubtfulValue(`is not usable as a credential: ${readResult.left}`))]
        : [],
    ),
    ...(lists?.usable.length ? listWarnings(lists, now, crlKeyOf(secret)) : []).map((message) =>
      violation.fieldError(path, violation.doubtfulValue(message)),
    ),
  ];
}

export function listWarnings({ problems, usable }: RevocationLists, now: Date, key = 'ca.crl'): readonly string[] {
  const expiry = expiryWarning(usable, now);
  return [...problems, ...(expiry === undefined ? [] : [expiry])].map(({ message }) => `${key}: ${message}`);
}

function checkedRoots(key: string, roots: TrustedRoots): Either<string, TrustedRoots> {
  const problem = certificatesOf(roots.certificates) === undefined ? noCertificate : undefined;
  return problem === undefined ? right(roots) : left(`${key}: ${problem}`);
}

const noCertificate = 'no valid PEM certificate';

function keyPairProblem(chain: Uint8Array, privateKey: Uint8Array): string | undefined {
  const leafCertificate = certificatesOf(chain)?.[0];
  if (leafCertificate === undefined) return noCertificate;
  const key = privateKeyOf(privateKey);
  if (key === undefined) return 'no valid PEM private key';
  return (
    keyStrengthProblem(key) ??
    (leafCertificate.checkPrivateKey(key) ? undefined : 'the private key does not match the certificate')
  );
}

function certificatesOf(pem: Uint8Array): readonly X509Certificate[] | undefined {
  try {
    const certificates = certificatesIn(Buffer.from(pem).toString('latin1'));
    return certificates.length > 0 ? certificates : undefined;
  } catch {
    return undefined;
  }
}

function privateKeyOf(pem: Uint8Array): KeyObject | undefined {
  try {
    return createPrivateKey(Buffer.from(pem));
  } catch {
    return undefined;
  }
}

function keyStrengthProblem({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  switch (asymmetricKeyType) {
    case 'rsa':
      return (asymmetricKeyDetails?.modulusLength ?? 0) < minRsaBits
        ? `an RSA key must have at least ${minRsaBits} bits`
        : undefined;
    case 'ec':
      return supportedCurves.has(asymmetricKeyDetails?.namedCurve ?? '')
        ? undefined
        : 'an ECDSA key must use P-256, P-384 or P-521';
    default:
      return 'the key must be RSA or ECDSA';
  }
}
