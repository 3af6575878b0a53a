/** What passes between the server and the threads that sign. Keys pass as handles, never as texts. */
import type { KeyObject } from 'node:crypto';

/** A certificate of the authority. */
export interface LeafOrder {
  /** PEM. */
  readonly request: string;
  /** Who asked: the only name in the certificate. */
  readonly uri: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Whether a request asks for this identity, for no other name, and is signed by the key in it. */
export interface VerifyOrder {
  /** PEM. */
  readonly requestToVerify: string;
  readonly uri: string;
}

export type SigningOrder = { readonly id: number } & (LeafOrder | VerifyOrder);

/** Everything that follows is signed by this one. */
export interface SignerOrder {
  readonly signer: { readonly der: Uint8Array; readonly privateKey: KeyObject };
}

export type SigningAnswer = { readonly id: number } & ThreadOutcome;

export type SigningOutcome =
  /** PEM of the leaf alone. */
  | { readonly leaf: string; readonly serialNumber: string }
  /** The request is at fault. */
  | { readonly refused: string }
  /** We are. */
  | { readonly failed: string };

export type VerifiedRequest =
  /** Public key of the request. */
  { readonly key: KeyObject } | Extract<SigningOutcome, { readonly refused: string } | { readonly failed: string }>;

export type ThreadOutcome = SigningOutcome | VerifiedRequest;
