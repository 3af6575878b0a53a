/** Orders certificate requests fairly, for the authority's threads and for a Kubernetes signer. */
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { FairQueueOptions, ShareKey } from '../../../model/collections/fair-queue.ts';

export interface SigningLimits {
  /** Maximum number of queued requests, all namespaces together. */
  readonly maxWaiting: number;
  readonly maxOfConnection: number;
}

export interface UrgentRequest {
  /** Expiry of the current certificate (Unix time in milliseconds), or 0 without one. */
  readonly endsAt: number;
}

/**
 * Serves namespaces, then service accounts, then connections in turn. Within a connection, the certificate with the shortest remaining lifetime is
 * first.
 */
export function signingShares(limits: SigningLimits): FairQueueOptions<UrgentRequest> {
  const { maxWaiting, maxOfConnection } = limits;
  return {
    maxItems: maxWaiting,
    maxOfKey: [undefined, undefined, maxOfConnection],
    precedes: (one, other) => one.endsAt < other.endsAt,
  };
}

/**
 * @param identity SPIFFE ID of the certificate. Each other name has its own share.
 * @param connection ID of the client's connection
 */
export function signingKey(identity: string, connection: string): ShareKey {
  const { namespace = identity, serviceAccount = '' } = workloadIdentityOf(identity) ?? {};
  return [namespace, serviceAccount, connection];
}
