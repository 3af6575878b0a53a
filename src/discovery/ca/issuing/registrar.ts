import type { KeyObject } from 'node:crypto';
import type { Certificate } from '../../../identity/certificate.ts';
import type { Names } from '../../../identity/certificate-extensions.ts';

export interface CertificateOrder {
  /** PKCS #10 request as PEM. */
  readonly request: string;
  readonly key: KeyObject;
  /** The certificate must contain exactly these names. */
  readonly names: Names;
  /** Whether the certificate also allows client authentication. */
  readonly isForClients: boolean;
  readonly lifetimeMs: number;
}

export interface IssuedChain {
  readonly leaf: Certificate;
  /** Excludes the root. */
  readonly intermediates: readonly Certificate[];
  readonly root: Certificate;
}

export type SignerResult =
  | { readonly issued: IssuedChain }
  /** The signer denied the request or issued another certificate than requested. */
  | { readonly refused: string }
  | { readonly failed: string }
  | { readonly tryAgainAfterMs: number };

export interface SigningCaller {
  /** Expiry of the current certificate (Unix time in milliseconds), or 0 without one. */
  readonly endsAt: number;
  /** The connection determines the queue share. */
  readonly client: string;
}

export interface Registrar {
  /** @param signal aborts a queued request when its client cancels */
  sign(order: CertificateOrder, caller: SigningCaller, signal?: AbortSignal): Promise<SignerResult>;
}
