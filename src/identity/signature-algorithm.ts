/** Signature algorithms of X.509 by key (RFC 5480, RFC 4055, RFC 8410). */
import { type KeyObject, sign, verify } from 'node:crypto';
import { AlgorithmIdentifier } from '@peculiar/asn1-x509';
import { type CertificateProblem, mismatchProblem } from './certificate-problem.ts';

interface Algorithm {
  readonly id: string;
  /** RSA algorithms have NULL parameters; others have no parameters. */
  readonly hasNullParameters: boolean;
  readonly digest: 'sha256' | 'sha384' | 'sha512';
}

const ecdsaOfCurve: ReadonlyMap<string, Algorithm> = new Map([
  ['prime256v1', { id: '1.2.840.10045.4.3.2', hasNullParameters: false, digest: 'sha256' }],
  ['secp384r1', { id: '1.2.840.10045.4.3.3', hasNullParameters: false, digest: 'sha384' }],
]);

const rsa: readonly Algorithm[] = [
  { id: '1.2.840.113549.1.1.11', hasNullParameters: true, digest: 'sha256' },
  { id: '1.2.840.113549.1.1.12', hasNullParameters: true, digest: 'sha384' },
  { id: '1.2.840.113549.1.1.13', hasNullParameters: true, digest: 'sha512' },
];

const ecdsa: readonly Algorithm[] = [
  ...ecdsaOfCurve.values(),
  { id: '1.2.840.10045.4.3.4', hasNullParameters: false, digest: 'sha512' },
];

const derNullBytes = new Uint8Array([5, 0]).buffer;
const minRsaBits = 2048;
/** Longer keys cost tens of milliseconds of CPU time, which a client must not control. */
const maxRsaBits = 4096;
/** With a public exponent as long as the key, a verification costs as much as a signature. */
const maxRsaExponent = 2n ** 32n;

function unsupportedProblem(path: string, expected: string, actual: string): CertificateProblem {
  return mismatchProblem('KEY_UNSUPPORTED', path, expected, actual);
}

/** Rejects keys that Envoy would reject, or that are too expensive. */
export function keyProblem(key: KeyObject): CertificateProblem | undefined {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'ec':
      return ecdsaOfCurve.has(namedCurve)
        ? undefined
        : unsupportedProblem('curve of the key', 'P-256 or P-384', namedCurve);
    case 'rsa':
      if (modulusLength < minRsaBits || modulusLength > maxRsaBits) {
        return unsupportedProblem('RSA key size', `${minRsaBits} to ${maxRsaBits} bits`, `${modulusLength} bits`);
      }
      return publicExponent < 3n || publicExponent >= maxRsaExponent || publicExponent % 2n === 0n
        ? unsupportedProblem('RSA public exponent', `odd, and from 3 to 2^32`, String(publicExponent))
        : undefined;
    default:
      return unsupportedProblem('key type', 'EC or RSA', key.asymmetricKeyType ?? 'unknown');
  }
}

/** @throws RangeError for a key that {@link keyProblem} rejects */
export function algorithmOf(key: KeyObject): Algorithm {
  const problem = keyProblem(key);
  if (problem !== undefined) throw new RangeError(problem.message);
  return key.asymmetricKeyType === 'rsa' ? rsa[0]! : ecdsaOfCurve.get(key.asymmetricKeyDetails!.namedCurve!)!;
}

export function identifierOf({ id, hasNullParameters }: Algorithm): AlgorithmIdentifier {
  return new AlgorithmIdentifier({ algorithm: id, ...(hasNullParameters && { parameters: derNullBytes }) });
}

export function signatureOf(data: Uint8Array, key: KeyObject): ArrayBuffer {
  return new Uint8Array(sign(algorithmOf(key).digest, data, key)).buffer;
}

/** Also returns false if algorithm and key do not match. */
export function isValidSignature(data: Uint8Array, algorithm: string, key: KeyObject, signature: Uint8Array): boolean {
  const knownAlgorithm = (key.asymmetricKeyType === 'rsa' ? rsa : ecdsa).find(({ id }) => id === algorithm);
  return knownAlgorithm !== undefined && verify(knownAlgorithm.digest, data, key, signature);
}
