/** Order and fair shares of certificate requests, whoever signs them: the authority's threads or a signer of the cluster. */
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { FairQueueOptions, ShareKey } from '../../../model/collections/fair-queue.ts';

export interface SigningLimits {
  /** Requests that wait, of all namespaces. */
  readonly maxWaiting: number;
  /** Requests of one connection that wait. */
  readonly maxOfConnection: number;
}

/** A request that waits. */
export interface UrgentRequest {
  /** When the caller's current certificate ends, Unix time in milliseconds; 0: it has none. */
  readonly endsAt: number;
}

/**
 * Namespaces take turns, then service accounts, then connections: what one of them declares urgent delays nobody else. Within a
 * connection the certificate with the shortest remaining lifetime is signed first (spec/identity.md §8, "herd").
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
 * @param identity SPIFFE ID that the certificate is for; another name is a share of its own
 * @param connection that the request came by
 */
export function signingKey(identity: string, connection: string): ShareKey {
  const { namespace = identity, serviceAccount = '' } = workloadIdentityOf(identity) ?? {};
  return [namespace, serviceAccount, connection];
}
