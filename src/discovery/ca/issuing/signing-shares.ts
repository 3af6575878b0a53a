import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { FairQueueOptions, ShareKey } from '../../../model/collections/fair-queue.ts';

export interface SigningLimits {
  /** Applies to all namespaces together. */
  readonly maxWaiting: number;
  readonly maxOfConnection: number;
}

export interface UrgentRequest {
  /** See SigningCaller in registrar.ts. */
  readonly endsAt: number;
}

/**
 * Round robin over namespaces, service accounts of each, and connections of each. Within a connection, the certificate that expires
 * first is renewed first.
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
 * @param identity SPIFFE ID of the certificate; each other name has its own share
 * @param connection ID of the client's connection
 */
export function signingKey(identity: string, connection: string): ShareKey {
  const { namespace = identity, serviceAccount = '' } = workloadIdentityOf(identity) ?? {};
  return [namespace, serviceAccount, connection];
}
