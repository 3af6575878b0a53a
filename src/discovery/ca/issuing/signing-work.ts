/** Messages between the server and the signing threads. Keys are passed as `KeyObject` handles, never as text. */
import type { KeyObject } from 'node:crypto';

/** Order for a certificate of the authority. */
export interface LeafOrder {
  /** PEM. */
  readonly request: string;
  /** SPIFFE ID of the caller, the only name in the certificate. */
  readonly uri: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Order to verify that a CSR contains this identity, no other name, and a signature by its own key. */
export interface VerifyOrder {
  /** PEM. */
  readonly requestToVerify: string;
  readonly uri: string;
}

export type SigningOrder = { readonly id: number } & (LeafOrder | VerifyOrder);

/** Sets the signer of all later orders. */
export interface SignerOrder {
  readonly signer: { readonly der: Uint8Array; readonly privateKey: KeyObject };
}

export type ThreadReply = { readonly id: number } & ThreadOutcome;

export type SigningOutcome =
  /** PEM of the leaf alone. */
  | { readonly leaf: string; readonly serialNumber: string }
  /** The request is invalid. */
  | { readonly refused: string }
  /** An internal error. */
  | { readonly failed: string };

export type VerifiedRequest =
  /** Public key of the request. */
  { readonly key: KeyObject } | Extract<SigningOutcome, { readonly refused: string } | { readonly failed: string }>;

export type ThreadOutcome = SigningOutcome | VerifiedRequest;
