/** How long a workload's certificate lasts (spec/discovery.md §11, TTL). */
import { backdatedMs, type Lifetime } from '../../../identity/issue.ts';

export interface LifetimeLimits {
  /** DEFAULT_WORKLOAD_CERT_TTL. */
  readonly defaultMs: number;
  /** MAX_WORKLOAD_CERT_TTL. */
  readonly maxMs: number;
}

export type LifetimeAnswer =
  | { readonly lifetime: Lifetime }
  /** The caller asks for too much. */
  | { readonly tooLong: string }
  /** Nothing can be signed any more. */
  | { readonly ended: string };

/**
 * @param requestedSeconds as the request says; 0 and less: the default
 * @param authorityEnd when the first certificate of the authority's chain ends: nothing may outlive it
 */
export function leafLifetime(
  requestedSeconds: bigint,
  { defaultMs, maxMs }: LifetimeLimits,
  authorityEnd: Date,
  now: Date,
): LifetimeAnswer {
  if (requestedSeconds * 1000n > BigInt(maxMs)) {
    return {
      tooLong: `the requested lifetime must be at most ${maxMs / 1000} s (MAX_WORKLOAD_CERT_TTL), got ${requestedSeconds} s`,
    };
  }
  const wanted = requestedSeconds <= 0n ? Math.min(defaultMs, maxMs) : Number(requestedSeconds) * 1000;
  // Certificates count in whole seconds.
  const notAfter = Math.min(floorSeconds(now.getTime() + wanted), authorityEnd.getTime());
  if (notAfter <= now.getTime()) return { ended: `the certificate authority expired on ${authorityEnd.toISOString()}` };
  return { lifetime: { notBefore: new Date(floorSeconds(now.getTime() - backdatedMs)), notAfter: new Date(notAfter) } };
}

function floorSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
