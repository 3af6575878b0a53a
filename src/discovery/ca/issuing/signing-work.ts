/** Keys are passed between threads as `KeyObject` handles, never as text. */
import type { KeyObject } from 'node:crypto';

export interface LeafOrder {
  /** CSR as PEM. */
  readonly request: string;
  /** A SPIFFE ID. The certificate contains no other name. */
  readonly uri: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Verifies that a CSR is signed by its key and contains only this identity. */
export interface VerifyOrder {
  /** CSR as PEM. */
  readonly requestToVerify: string;
  readonly uri: string;
}

export type SigningOrder = { readonly id: number } & (LeafOrder | VerifyOrder);

export interface SignerOrder {
  readonly signer: { readonly der: Uint8Array; readonly privateKey: KeyObject };
}

export type ThreadReply = { readonly id: number } & ThreadOutcome;

export type SigningOutcome =
  /** PEM of the leaf. */
  { readonly leaf: string; readonly serialNumber: string } | { readonly refused: string } | { readonly failed: string };

export type VerifiedRequest =
  | { readonly key: KeyObject }
  | Extract<SigningOutcome, { readonly refused: string } | { readonly failed: string }>;

export type ThreadOutcome = SigningOutcome | VerifiedRequest;
