/** Fair order of certificate requests, for the authority's threads and for a Kubernetes signer. */
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { FairQueueOptions, ShareKey } from '../../../model/collections/fair-queue.ts';

export interface SigningLimits {
  /** Queued requests of all namespaces. */
  readonly maxWaiting: number;
  /** Queued requests of one connection. */
  readonly maxOfConnection: number;
}

export interface UrgentRequest {
  /** Expiry of the current certificate, Unix time in milliseconds; 0 without one. */
  readonly endsAt: number;
}

/**
 * Round-robin over namespaces, then service accounts, then connections, so that no client's urgency delays another client. Within a connection, the
 * certificate with the shortest remaining lifetime is first (spec/identity.md §8, "herd").
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
 * @param identity SPIFFE ID of the certificate; other names have separate shares
 * @param connection ID of the client's connection
 */
export function signingKey(identity: string, connection: string): ShareKey {
  const { namespace = identity, serviceAccount = '' } = workloadIdentityOf(identity) ?? {};
  return [namespace, serviceAccount, connection];
}
