/** What passes between the server and the threads that sign. Keys pass as handles, never as texts. */
import type { KeyObject } from 'node:crypto';

export interface SigningOrder {
  readonly id: number;
  /** PEM. */
  readonly request: string;
  /** Who asked: the only name in the certificate. */
  readonly uri: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Everything that follows is signed by this one. */
export interface SignerOrder {
  readonly signer: { readonly der: Uint8Array; readonly privateKey: KeyObject };
}

export type SigningAnswer = { readonly id: number } & SigningOutcome;

export type SigningOutcome =
  /** PEM of the leaf alone. */
  | { readonly leaf: string; readonly serialNumber: string }
  /** The request is at fault. */
  | { readonly refused: string }
  /** We are. */
  | { readonly failed: string };
