/** Certificate requests (PKCS #10, RFC 2986): the agent creates them, the certificate authority verifies them. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { Attributes, CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  Attribute,
  Extension,
  Extensions,
  id_ce_subjectAltName,
  Name,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
} from '@peculiar/asn1-x509';
import { messageOf } from '../runtime/errors.ts';
import { type AlternativeNames, alternativeNamesOf } from './certificate.ts';
import { alternativeNamesExtension, type Names } from './certificate-extensions.ts';
import { CertificateError, type CertificateProblem, problemOf } from './certificate-problem.ts';
import { pemBlocks, pemOf } from './pem.ts';
import { algorithmOf, identifierOf, isValidSignature, keyProblem, signatureOf } from './signature-algorithm.ts';

export class CertificateRequestError extends CertificateError {
  override readonly name = 'CertificateRequestError';

  constructor(problem: string | CertificateProblem, options: { readonly cause?: unknown } = {}) {
    super(typeof problem === 'string' ? problemOf('CERTIFICATE_REQUEST_INVALID', problem) : problem, options);
  }
}

/** Sufficient for any request: an RSA-4096 key with some names has 2 KB. */
const maxRequestBytes = 16 * 1024;
const extensionRequest = '1.2.840.113549.1.9.14';

/** @param uris requested alternative names; chartpilot's authority ignores them, other CAs do not */
export function createRequest(privateKey: KeyObject, uris: readonly string[]): string {
  return createRequestFor(privateKey, { uris, dns: [], ips: [] });
}

export function createRequestFor(privateKey: KeyObject, alternativeNames: Names): string {
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const names = new Extensions([new Extension(alternativeNamesExtension(alternativeNames, true))]);
  const info = new CertificationRequestInfo({
    subject: new Name(),
    subjectPKInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
    attributes: new Attributes([new Attribute({ type: extensionRequest, values: [AsnConvert.serialize(names)] })]),
  });
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: identifierOf(algorithmOf(privateKey)),
    signature: signatureOf(new Uint8Array(AsnConvert.serialize(info)), privateKey),
  });
  return pemOf('CERTIFICATE REQUEST', new Uint8Array(AsnConvert.serialize(request)));
}

/**
 * Verifies the signature and returns the key. Names come from the caller's identity, never from the request.
 *
 * @throws CertificateRequestError
 */
export function verifyRequest(pem: string): KeyObject {
  if (pem.length > 2 * maxRequestBytes) throw new CertificateRequestError(`must have at most ${maxRequestBytes} bytes`);
  const { request, key } = parseRequest(pem);
  const problem = keyProblem(key);
  if (problem !== undefined) throw new CertificateRequestError(problem);
  const { certificationRequestInfoRaw: raw, signatureAlgorithm, signature } = request;
  if (
    raw === undefined ||
    !isSignatureValid(new Uint8Array(raw), signatureAlgorithm.algorithm, key, new Uint8Array(signature))
  ) {
    throw new CertificateRequestError('signature does not match its public key');
  }
  return key;
}

/**
 * Returns the names to certify with an external signer.
 *
 * @throws CertificateRequestError
 */
export function requestedNamesIn(pem: string): AlternativeNames {
  const { request } = parseRequest(pem);
  try {
    const requestedNames = request.certificationRequestInfo.attributes
      .filter(({ type }) => type === extensionRequest)
      .flatMap(({ values }) => values.flatMap((value) => [...AsnConvert.parse(value, Extensions)]))
      .filter(({ extnID }) => extnID === id_ce_subjectAltName)
      .flatMap(({ extnValue }) => [...AsnConvert.parse(extnValue.buffer, SubjectAlternativeName)]);
    return alternativeNamesOf(new SubjectAlternativeName(requestedNames), false);
  } catch (error) {
    throw new CertificateRequestError(`has invalid subject alternative names: ${messageOf(error)}`, { cause: error });
  }
}

function parseRequest(pem: string): { request: CertificationRequest; key: KeyObject } {
  try {
    const blocks = pemBlocks(pem).filter(({ label }) => /^(NEW )?CERTIFICATE REQUEST$/.test(label));
    if (blocks.length !== 1)
      throw new CertificateRequestError(`must have one PEM block "CERTIFICATE REQUEST", got ${blocks.length}`);
    const { der } = blocks[0]!;
    const request = AsnConvert.parse(der, CertificationRequest);
    if (lengthOf(der) !== der.length) throw new CertificateRequestError('has trailing data after the request');
    const spki = Buffer.from(AsnConvert.serialize(request.certificationRequestInfo.subjectPKInfo));
    return { request, key: createPublicKey({ key: spki, format: 'der', type: 'spki' }) };
  } catch (error) {
    if (error instanceof CertificateRequestError) throw error;
    throw new CertificateRequestError(`is not a PKCS #10 certificate request: ${messageOf(error)}`, { cause: error });
  }
}

function isSignatureValid(data: Uint8Array, algorithm: string, key: KeyObject, signature: Uint8Array): boolean {
  try {
    return isValidSignature(data, algorithm, key, signature);
  } catch {
    return false;
  }
}

/** Returns the length of the first structure with its header. The parser does not report trailing bytes. */
function lengthOf(der: Uint8Array): number {
  const firstByte = der[1] ?? 0;
  if (firstByte < 0x80) return 2 + firstByte;
  const bytes = firstByte & 0x7f;
  let length = 0;
  for (let offset = 2; offset < 2 + bytes; offset++) length = length * 256 + (der[offset] ?? 0);
  return 2 + bytes + length;
}
