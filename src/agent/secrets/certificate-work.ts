/** What passes between an agent and the thread that makes a request for it. */
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';

export interface HelperWork {
  /** Who this workload says that it is; the authority knows better. */
  readonly uri: string;
  readonly key: { readonly type: 'ec' } | { readonly type: 'rsa'; readonly bits: number };
  readonly lifetimeSeconds: number;
  readonly metadata: { readonly [name: string]: string };
}

/** What the authority answered, and when. */
export interface HelperOrder {
  readonly response: Uint8Array;
  readonly nowMs: number;
}

export interface CheckedCertificate {
  readonly pair: KeyPair;
  /** PEM, one each. */
  readonly roots: readonly string[];
  /** Their hash. */
  readonly authorities: string;
  /** Hash of the one that the certificate leads to. */
  readonly root: string;
  /** Serial number as OpenSSL writes it: hexadecimal, in capitals. */
  readonly serialNumber: string;
  readonly endsAtMs: number;
}

export type HelperAnswer =
  | { readonly request: Uint8Array }
  | CheckedCertificate
  | { readonly problem: string; readonly code: CertificateCode };
