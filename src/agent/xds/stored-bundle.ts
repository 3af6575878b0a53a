/** Roots of peers, from the control plane (PCDS). */
import type { TrustBundleReceived } from '../../../machines/agent/secrets-protocol.ts';
import { hashesOf, hashOfRoots, parseCertificates } from '../identity/root-set.ts';
import { readTaintedRoots, rootsIn } from './discovery-wire.ts';

/**
 * `undefined` without a valid certificate.
 *
 * @throws Error if the bytes are not a valid message
 */
export function parseBundle(value: Uint8Array): Omit<TrustBundleReceived, 'type'> | undefined {
  const roots = rootsIn(value).flatMap((pem) => parseCertificates(Buffer.from(pem)));
  if (roots.length === 0) return undefined;
  return { roots, hash: hashOfRoots(roots), members: hashesOf(roots), tainted: readTaintedRoots(value) };
}

export function storedBundle(value: Uint8Array | undefined): Omit<TrustBundleReceived, 'type'> | undefined {
  try {
    return value && parseBundle(value);
  } catch {
    return undefined;
  }
}
