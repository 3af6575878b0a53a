/** External signing of workload certificates: orders and results. */
import type { KeyObject } from 'node:crypto';
import type { Certificate } from '../../../identity/certificate.ts';
import type { Names } from '../../../identity/certificate-extensions.ts';

export interface CertificateOrder {
  /** PKCS #10, PEM. */
  readonly request: string;
  /** Public key of the request. */
  readonly key: KeyObject;
  /** The certificate must contain exactly these names. */
  readonly names: Names;
  /** Client authentication in addition to server authentication. */
  readonly isForClients: boolean;
  readonly lifetimeMs: number;
}

export interface IssuedChain {
  readonly leaf: Certificate;
  /** Intermediates from the leaf's issuer to the root, without the root. */
  readonly intermediates: readonly Certificate[];
  readonly root: Certificate;
}

export type SignerResult =
  | { readonly issued: IssuedChain }
  /** The signer denied the request, or issued something else than requested. */
  | { readonly refused: string }
  | { readonly failed: string }
  /** The queue is full; retry after this delay. */
  | { readonly tryAgainAfterMs: number };

export interface SigningCaller {
  /** Expiry of the caller's current certificate, Unix time in milliseconds; 0 if it has none. */
  readonly endsAt: number;
  /** Connection whose share of the queue the request uses. */
  readonly client: string;
}

export interface Registrar {
  /** @param signal aborts a queued request when its client cancels */
  sign(order: CertificateOrder, caller: SigningCaller, signal?: AbortSignal): Promise<SignerResult>;
}
