/** Certificates that somebody else signs for the mesh: what is asked of them, and what comes of it. */
import type { KeyObject } from 'node:crypto';
import type { Certificate } from '../../../identity/certificate.ts';
import type { Names } from '../../../identity/certificate-extensions.ts';

export interface CertificateOrder {
  /** PEM, of PKCS #10. */
  readonly request: string;
  /** Of the request. */
  readonly key: KeyObject;
  /** All of them, and no others. */
  readonly names: Names;
  /** For servers it is in any case. */
  readonly isForClients: boolean;
  readonly lifetimeMs: number;
}

export interface IssuedCertificate {
  readonly leaf: Certificate;
  /** From the leaf's issuer to the root, without it. */
  readonly between: readonly Certificate[];
  readonly root: Certificate;
}

export type SignerAnswer =
  | { readonly issued: IssuedCertificate }
  /** The signer's word, or what it signed was something else. */
  | { readonly refused: string }
  | { readonly failed: string }
  /** There is no room; worth another try after so long. */
  | { readonly tryAgainAfterMs: number };

export interface Whose {
  /** When what the caller has now ends, Unix time in milliseconds; 0: it has nothing. */
  readonly endsAt: number;
  /** Whose share of the queue it takes. */
  readonly client: string;
}

/** Has others sign. */
export interface Registrar {
  /** @param signal the caller is gone: what has not begun is not done */
  sign(order: CertificateOrder, whose: Whose, signal?: AbortSignal): Promise<SignerAnswer>;
}
