import type { KeyObject } from 'node:crypto';

/** The key is a handle, whose bytes are outside of V8's heap and its snapshots. */
export interface KeyPair {
  /** PEM: the certificate, then its intermediate certificates. */
  readonly chain: string;
  readonly key: KeyObject;
}

/** PEM (PKCS #8) of a key, to be sent, written or passed to TLS immediately. Node's intermediate string becomes garbage immediately. */
export function privateKeyPem(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'pem', type: 'pkcs8' }));
}
