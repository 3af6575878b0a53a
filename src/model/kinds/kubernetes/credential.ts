/**
 * Certificates and keys as Secrets and ConfigMaps have them (spec/discovery.md §8.7, credentialName). What Envoy would
 * refuse is found here, so that a bad Secret never takes the place of a good one. No message repeats what it is about.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type Either, isLeft, left, right } from 'fp-ts/lib/Either.js';
import type { FieldError } from '../../fields/decode.ts';
import type { ConfigMap } from './config-map.ts';
import { type Secret, secretBytes } from './secret.ts';

/** What a server shows to its clients, and proves that it is. PEM. */
export interface ServerCertificate {
  readonly chain: Uint8Array;
  readonly privateKey: Uint8Array;
  /** DER, as an authority's responder gave it. */
  readonly ocspStaple?: Uint8Array;
}

/** The authorities a server trusts to have signed its clients' certificates. PEM. */
export interface TrustedRoots {
  readonly certificates: Uint8Array;
  readonly crl?: Uint8Array;
}

/** Names of entries, generic Secrets' first: of one that has both, these count. */
const pairs = [
  ['cert', 'key'],
  ['tls.crt', 'tls.key'],
] as const;
const rootKeys = ['cacert', 'ca.crt'] as const;

/** Envoy takes no shorter RSA key, and these curves only (its page on TLS, "certificate selection"). */
const shortestRsaBits = 2048;
const curves: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/** @returns why there is no usable pair of certificate and key in the Secret, or the pair */
export function serverCertificateOf(secret: Secret): Either<string, ServerCertificate> {
  const [chainKey, privateKeyKey] =
    pairs.find((pair) => pair.every((key) => secretBytes(secret, key) !== undefined)) ?? pairs[1];
  const [chain, privateKey] = [secretBytes(secret, chainKey), secretBytes(secret, privateKeyKey)];
  if (chain === undefined || privateKey === undefined) return left('has neither tls.crt and tls.key nor cert and key');
  const mistake = pairMistake(chain, privateKey);
  if (mistake !== undefined) return left(`${chainKey} and ${privateKeyKey}: ${mistake}`);
  const ocspStaple = secretBytes(secret, 'tls.ocsp-staple');
  return right({ chain, privateKey, ...(ocspStaple?.length && { ocspStaple }) });
}

/** @returns why the Secret has no usable certificates of authorities, or these */
export function trustedRootsOf(secret: Secret): Either<string, TrustedRoots> {
  const key = rootKeys.find((candidate) => secretBytes(secret, candidate) !== undefined);
  if (key === undefined) return left('has neither ca.crt nor cacert');
  const certificates = secretBytes(secret, key)!;
  const crl = secretBytes(secret, 'ca.crl');
  return checkedRoots(key, { certificates, ...(crl?.length && { crl }) });
}

/** The same of a ConfigMap: these certificates are no secret. */
export function trustedRootsOfConfigMap({ data, binaryData }: ConfigMap): Either<string, TrustedRoots> {
  const key = rootKeys.find((candidate) => (data[candidate] ?? binaryData[candidate]) !== undefined);
  if (key === undefined) return left('has neither ca.crt nor cacert');
  const text = data[key];
  const certificates = text === undefined ? Buffer.from(binaryData[key]!, 'base64') : new TextEncoder().encode(text);
  return checkedRoots(key, { certificates });
}

/** What makes a Secret that looks like a server's credential useless as one. */
export function credentialWarnings(secret: Secret): FieldError[] {
  const keys = [...Object.keys(secret.data), ...Object.keys(secret.stringData)];
  const isPair = pairs.some((pair) => pair.every((key) => keys.includes(key)));
  const hasRoots = rootKeys.some((key) => keys.includes(key));
  const read = [...(isPair ? [serverCertificateOf(secret)] : []), ...(hasRoots ? [trustedRootsOf(secret)] : [])];
  const path = Object.keys(secret.data).length > 0 ? 'data' : 'stringData';
  return read.flatMap((one) => (isLeft(one) ? [{ path, message: `is no use as a credential: ${one.left}` }] : []));
}

function checkedRoots(key: string, roots: TrustedRoots): Either<string, TrustedRoots> {
  const mistake = certificatesOf(roots.certificates) === undefined ? noCertificate : undefined;
  return mistake === undefined ? right(roots) : left(`${key}: ${mistake}`);
}

const noCertificate = 'there is no PEM certificate that can be read';

function pairMistake(chain: Uint8Array, privateKey: Uint8Array): string | undefined {
  const leaf = certificatesOf(chain)?.[0];
  if (leaf === undefined) return noCertificate;
  const key = privateKeyOf(privateKey);
  if (key === undefined) return 'there is no PEM private key that can be read';
  return strengthMistake(key) ?? (leaf.checkPrivateKey(key) ? undefined : 'the key is not the certificate’s');
}

/** All of a file; undefined when there is none, or one of them cannot be read. */
function certificatesOf(pem: Uint8Array): readonly X509Certificate[] | undefined {
  const blocks = Buffer.from(pem)
    .toString('latin1')
    .match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g);
  if (blocks === null) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
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

function strengthMistake({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  switch (asymmetricKeyType) {
    case 'rsa':
      return (asymmetricKeyDetails?.modulusLength ?? 0) < shortestRsaBits
        ? `an RSA key must have ${shortestRsaBits} bits or more`
        : undefined;
    case 'ec':
      return curves.has(asymmetricKeyDetails?.namedCurve ?? '')
        ? undefined
        : 'an ECDSA key must be of P-256, P-384 or P-521';
    default:
      return 'the key must be RSA or ECDSA';
  }
}
