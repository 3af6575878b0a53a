import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';

export interface HelperWork {
  /** The authority decides which identity it certifies. */
  readonly uri: string;
  readonly key: { readonly type: 'ec' } | { readonly type: 'rsa'; readonly bits: number };
  readonly lifetimeSeconds: number;
  readonly metadata: { readonly [name: string]: string };
}

export interface HelperOrder {
  readonly response: Uint8Array;
  readonly nowMs: number;
}

export interface CheckedCertificate {
  readonly pair: KeyPair;
  readonly roots: readonly string[];
  readonly authorities: string;
  /** Hash of the root that issued the certificate. */
  readonly root: string;
  /** Uppercase hexadecimal, as OpenSSL prints it. */
  readonly serialNumber: string;
  readonly endsAtMs: number;
}

export type HelperResult =
  | { readonly request: Uint8Array }
  | CheckedCertificate
  | { readonly problem: string; readonly code: CertificateCode };
