import type { ErrorTable } from './error-table.ts';

export const certificateTable = {
  CERTIFICATE_MISSING: {
    meaning: 'a file or response contains no certificate where one is needed',
    action: 'provide a PEM block `CERTIFICATE`',
  },
  CERTIFICATE_INVALID: {
    meaning: 'not an X.509 certificate, or a damaged or unsupported one',
    action: 'replace it; `openssl x509 -in FILE -text` shows what it contains',
  },
  CERTIFICATE_EXPIRED: {
    meaning: 'a certificate has expired',
    action: 'renew it, and check the clock of the host',
  },
  CERTIFICATE_NOT_YET_VALID: {
    meaning: 'a certificate is not valid yet',
    action: 'check the clocks of this host and of the CA',
  },
  CERTIFICATE_CHAIN_INVALID: {
    meaning: 'a certificate has no valid chain to a trusted root',
    action: 'provide the intermediate certificates, or the root that signed it',
  },
  CERTIFICATE_NOT_CA: {
    meaning: 'a certificate is used as a CA certificate and is not one',
    action: 'use a certificate with `CA:TRUE` and key usage `keyCertSign`',
  },
  CERTIFICATE_PROFILE_INVALID: {
    meaning: 'a workload certificate violates the X.509-SVID profile',
    action: 'correct the profile of the CA that issued it (docs/identity.md)',
  },
  CERTIFICATE_UNEXPECTED: {
    meaning: 'an issued certificate differs from what was requested',
    action: 'check the CA; the certificate is not used',
  },
  CERTIFICATE_REJECTED: {
    meaning: 'Envoy rejects a certificate or its key',
    action: 'replace it; Envoy accepts RSA keys of at least 2048 bits and the curves P-256, P-384 and P-521',
  },
  CERTIFICATE_FILE_UNREADABLE: {
    meaning: 'a certificate, key or token file cannot be read, is too large or changes while it is read',
    action: 'check the path, its permissions and what writes it',
  },
  PRIVATE_KEY_INVALID: {
    meaning: 'a private key is missing, damaged or encrypted',
    action: 'provide an unencrypted PEM private key',
  },
  PRIVATE_KEY_MISMATCH: {
    meaning: 'a private key does not belong to its certificate',
    action: 'replace both files together, with the certificate of the key first in its file',
  },
  KEY_UNSUPPORTED: {
    meaning: 'a key has an unsupported type, curve or size',
    action: 'use ECDSA with P-256 or P-384, or RSA with 2048 to 4096 bits',
  },
  PEM_INVALID: {
    meaning: 'a PEM block is not terminated, not base64, or one of too many',
    action: 'replace the file',
  },
  CERTIFICATE_NOT_ISSUED: {
    meaning: 'the CA issued no usable certificate',
    action: 'see the reason; check the CA, its address and the credentials',
  },
  REVOCATION_LIST_INVALID: {
    meaning: 'not a certificate revocation list, or one that no CA certificate of the file signed',
    action: 'provide a list that the CA of the clients signed',
  },
  REVOCATION_LIST_EXPIRED: {
    meaning: 'a certificate revocation list has expired or expires soon',
    action: 'provide a newer list: with an expired one Envoy rejects every client',
  },
  REVOCATION_LIST_NOT_YET_VALID: {
    meaning: 'a certificate revocation list is not valid yet',
    action: 'check the clocks of this host and of the CA',
  },
  REVOCATION_LIST_MISSING: {
    meaning: 'a CA certificate of the chain has no usable certificate revocation list',
    action: 'provide a list of each CA up to the root: without one Envoy rejects the clients of the CA',
  },
  TRUST_BUNDLE_INVALID: {
    meaning: 'not a SPIFFE trust bundle, or one without a usable root',
    action: 'check the bundle endpoint of the trust domain',
  },
} as const satisfies ErrorTable;

export type CertificateCode = keyof typeof certificateTable | 'CERTIFICATE_REQUEST_INVALID';
