import { backdatingMs, type ValidityPeriod } from '../../../identity/issue.ts';

export interface LifetimeLimits {
  /** DEFAULT_WORKLOAD_CERT_TTL. */
  readonly defaultMs: number;
  /** MAX_WORKLOAD_CERT_TTL. */
  readonly maxMs: number;
}

export type LifetimeResult =
  | { readonly lifetime: ValidityPeriod }
  | { readonly tooLong: string }
  | { readonly authorityExpired: string };

/**
 * @param requestedSeconds 0 or less selects the default
 * @param authorityExpiry earliest expiry in the authority's chain
 */
export function leafLifetime(
  requestedSeconds: bigint,
  { defaultMs, maxMs }: LifetimeLimits,
  authorityExpiry: Date,
  now: Date,
): LifetimeResult {
  if (requestedSeconds * 1000n > BigInt(maxMs)) {
    return {
      tooLong: `the requested lifetime must be at most ${maxMs / 1000} s (MAX_WORKLOAD_CERT_TTL), got ${requestedSeconds} s`,
    };
  }
  const requestedMs = requestedSeconds <= 0n ? Math.min(defaultMs, maxMs) : Number(requestedSeconds) * 1000;
  // X.509 times have a resolution of one second.
  const notAfter = Math.min(roundDownToSeconds(now.getTime() + requestedMs), authorityExpiry.getTime());
  if (notAfter <= now.getTime())
    return { authorityExpired: `the certificate authority expired on ${authorityExpiry.toISOString()}` };
  return {
    lifetime: { notBefore: new Date(roundDownToSeconds(now.getTime() - backdatingMs)), notAfter: new Date(notAfter) },
  };
}

function roundDownToSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
