import type { KeyObject } from 'node:crypto';

/** A certificate and its private key. The key is a handle: its bytes are outside of V8's heap, of which a snapshot or a core may be taken. */
export interface KeyPair {
  /** PEM: the certificate, then those that lead to its authority. */
  readonly chain: string;
  readonly key: KeyObject;
}

/** PEM (PKCS #8) of a key, for the moment in which it is sent, written or given to TLS. The text that Node makes of it is garbage at once. */
export function privateKeyPem(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'pem', type: 'pkcs8' }));
}
