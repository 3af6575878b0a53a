/** Messages between the agent and the thread that generates a CSR. */
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';

export interface HelperWork {
  /** Requested identity; the authority decides. */
  readonly uri: string;
  readonly key: { readonly type: 'ec' } | { readonly type: 'rsa'; readonly bits: number };
  readonly lifetimeSeconds: number;
  readonly metadata: { readonly [name: string]: string };
}

/** Response of the authority, and when it arrived. */
export interface HelperOrder {
  readonly response: Uint8Array;
  readonly nowMs: number;
}

export interface CheckedCertificate {
  readonly pair: KeyPair;
  /** One PEM text per root. */
  readonly roots: readonly string[];
  /** Hash of the roots. */
  readonly authorities: string;
  /** Hash of the root of the certificate. */
  readonly root: string;
  /** Uppercase hexadecimal, as OpenSSL prints it. */
  readonly serialNumber: string;
  readonly endsAtMs: number;
}

export type HelperResult =
  | { readonly request: Uint8Array }
  | CheckedCertificate
  | { readonly problem: string; readonly code: CertificateCode };
