/**
 * Verifies an issued leaf with a different parser from the one that encoded it. OpenSSL checks the fields that differ between leaves. OpenSSL does
 * not expose criticality and key usage. They are the same for all leaves of an issuer and key type, so chartpilot's parser checks only the first and
 * every hundredth leaf.
 */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { readCertificate } from './certificate.ts';
import { CertificateError, problemOf } from './certificate-problem.ts';
import type { Issuer, ValidityPeriod } from './issue.ts';
import { svidProblems } from './x509-svid.ts';

export interface LeafRequest {
  readonly key: KeyObject;
  readonly uri: string;
  readonly lifetime: ValidityPeriod;
}

const serverAndClient = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'];
const fullCheckInterval = 100;

export class LeafCheck {
  readonly #issuer: Issuer;
  readonly #counts = new Map<string, number>();

  constructor(issuer: Issuer) {
    this.#issuer = issuer;
  }

  /**
   * @returns the serial number in OpenSSL's notation
   * @throws CertificateError if the certificate is invalid or differs from the request
   */
  serialNumberOf(der: Uint8Array, request: LeafRequest): string {
    const x509 = new X509Certificate(der);
    const problems = [...this.#differences(x509, der, request), ...this.#problemsOfKind(der, request.key)];
    if (problems.length > 0) {
      const message = `issued certificate differs from the request: ${problems.join('; ')}`;
      throw new CertificateError(problemOf('CERTIFICATE_UNEXPECTED', message));
    }
    return x509.serialNumber;
  }

  #differences(x509: X509Certificate, der: Uint8Array, { key, uri, lifetime }: LeafRequest): string[] {
    const { certificate } = this.#issuer;
    const requirements: readonly (readonly [string, boolean])[] = [
      ['trailing data after the certificate', x509.raw.length === der.length],
      ['subject is not empty', (x509.subject ?? '') === ''],
      ['subject alternative names differ', x509.subjectAltName === `URI:${uri}`],
      ['public key differs', x509.publicKey.equals(key)],
      ['notBefore differs', areSameSecond(x509.validFromDate, lifetime.notBefore)],
      ['notAfter differs', areSameSecond(x509.validToDate, lifetime.notAfter)],
      ['it is a CA certificate', !x509.ca],
      [
        'extended key usage must be serverAuth and clientAuth',
        serverAndClient.every((usage) => x509.keyUsage?.includes(usage) === true),
      ],
      ['issuer differs', x509.checkIssued(certificate.x509)],
    ];
    return requirements.filter(([, holdsTrue]) => !holdsTrue).map(([message]) => message);
  }

  #problemsOfKind(der: Uint8Array, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly string[] {
    const kind = `${asymmetricKeyType} ${asymmetricKeyDetails?.namedCurve ?? ''}`;
    const count = this.#counts.get(kind) ?? 0;
    const problems =
      count % fullCheckInterval === 0 ? svidProblems(readCertificate(der)).map(({ message }) => message) : [];
    // Counts only valid leaves, so the leaf after an invalid one is parsed completely.
    if (problems.length === 0) this.#counts.set(kind, count + 1);
    return problems;
  }
}

function areSameSecond(one: Date, other: Date): boolean {
  return Math.floor(one.getTime() / 1_000) === Math.floor(other.getTime() / 1_000);
}
