/** Roots to trust as the control plane tells them (PCDS). */
import type { TrustBundleReceived } from '../../../machines/agent/secrets-protocol.ts';
import { certificatesIn, hashesOf, hashOfRoots } from '../identity/root-set.ts';
import { rootsIn, taintedIn } from './discovery-wire.ts';

/** Undefined: nothing in it can be read as a certificate. @throws Error when it is no message of this kind */
export function bundleIn(value: Uint8Array): Omit<TrustBundleReceived, 'type'> | undefined {
  const roots = rootsIn(value).flatMap((pem) => certificatesIn(Buffer.from(pem)));
  if (roots.length === 0) return undefined;
  return { roots, hash: hashOfRoots(roots), members: hashesOf(roots), tainted: taintedIn(value) };
}

/** The bundle that an agent before this one was told; undefined: there is none that can be read. */
export function keptBundle(value: Uint8Array | undefined): Omit<TrustBundleReceived, 'type'> | undefined {
  try {
    return value && bundleIn(value);
  } catch {
    return undefined;
  }
}
