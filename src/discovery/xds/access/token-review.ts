/** Authenticates bearer tokens by a TokenReview of the API server that signed them. */

import { decodeJwt } from 'jose';
import type { ShareKey } from '../../../model/collections/fair-queue.ts';
import { FairTasks } from '../../../model/collections/fair-tasks.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { addressGroup } from '../../../runtime/fences/connection-bounds.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { scalarText } from '../../../runtime/scalar-text.ts';
import { ApiError } from '../../kubernetes/api-failure.ts';
import { tokenReviews } from '../../kubernetes/api-resource.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import type { Authentication, Authenticator } from './authenticator.ts';
import { identityOfAccount, tokenOf } from './bearer-token.ts';

type Reviewer = Pick<ApiServer, 'request'>;

export interface TokenReviewOptions {
  /** Also reviews tokens without a cluster ID. */
  readonly server: Reviewer;
  readonly clusters: readonly string[];
  /** `undefined` for a cluster outside of the mesh. */
  readonly remoteServer?: (cluster: string) => Reviewer | undefined;
  readonly audience: string;
  /** Tokens contain no trust domain, so that of the mesh applies. */
  readonly trustDomain: () => string;
  readonly isRevoked?: (id: string) => boolean;
}

const reviewTimeoutMs = 5_000;
/** The limit applies per API server, so that unknown clients cannot overload it. */
const maxReviews = 64;
/** Leaves capacity for other addresses while the API server is slow. */
const maxReviewsOfAddress = 48;
/** If more reviews wait, one of the address with the most reviews is rejected. */
const maxWaitingReviews = 1_000;
/** Clients time out after this time. */
const maxWaitMs = 10_000;
/** Subjects of Kubernetes have at most 340 characters. */
const maxSubjectLength = 400;
const clusterHeader = 'clusterid';
/** Never aborted, because the request has a timeout. */
const neverAbortedSignal = new AbortController().signal;
const idOfToken = 'authentication.kubernetes.io/credential-id';

export function tokenReview(options: TokenReviewOptions): Authenticator {
  const reviews = new WeakMap<Reviewer, FairTasks>();
  const review = async (server: Reviewer, token: string): Promise<Authentication> => {
    try {
      return identityIn(await reviewToken(server, token, options), options);
    } catch (error) {
      // The token is not the cause of this failure.
      return { failure: messageOf(error), ...(error instanceof ApiError && { isUnavailable: true }) };
    }
  };
  const queueReview = (server: Reviewer, token: string, host: string): Promise<Authentication> => {
    const tasks = reviews.get(server) ?? newTasks();
    reviews.set(server, tasks);
    const deadline = performance.now() + maxWaitMs;
    return tasks.schedule<Authentication>({
      key: shareOf(host, token),
      run: async (onResult) => onResult(performance.now() > deadline ? tooManyReviews : await review(server, token)),
      reject: () => tooManyReviews,
    });
  };
  return {
    name: 'TokenReview',
    async authenticate(peer): Promise<Authentication> {
      const bearerToken = tokenOf(peer);
      if ('failure' in bearerToken) return bearerToken;
      const foreignClusters = [...new Set(peer.metadata(clusterHeader))].filter(
        (cluster) => !options.clusters.includes(cluster),
      );
      const [cluster, ...otherClusters] = foreignClusters;
      const server = cluster === undefined ? options.server : options.remoteServer?.(cluster);
      if (server === undefined || otherClusters.length > 0)
        return { failure: `unknown cluster ${JSON.stringify(foreignClusters.join().slice(0, 100))}` };
      return queueReview(server, bearerToken.token, peer.host);
    },
  };
}

const tooManyReviews: Authentication = {
  failure: 'too many TokenReviews are running, retry later',
  isUnavailable: true,
};

function newTasks(): FairTasks {
  return new FairTasks({
    maxRunning: maxReviews,
    maxRunningOfKey: maxReviewsOfAddress,
    maxWaiting: maxWaitingReviews,
  });
}

/** Shares are per address, because nothing else is verified yet, then per claimed namespace and account behind a shared address. */
function shareOf(host: string, token: string): ShareKey {
  const subject = claimedSubject(token);
  return [addressGroup(host), subject.split(':')[2] ?? '', subject];
}

function claimedSubject(token: string): string {
  try {
    return decodeJwt(token).sub?.slice(0, maxSubjectLength) ?? '';
  } catch {
    return '';
  }
}

async function reviewToken(server: Reviewer, token: string, { audience }: TokenReviewOptions): Promise<unknown> {
  const spec = { token, audiences: [audience] };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
  const { status } = await server.request(
    { method: 'POST', resource: tokenReviews, body, timeoutMs: reviewTimeoutMs },
    neverAbortedSignal,
  );
  return status;
}

function identityIn(status: unknown, { audience, trustDomain, isRevoked }: TokenReviewOptions): Authentication {
  if (!isObject(status) || status.authenticated !== true)
    return { failure: 'the API server rejected the token (TokenReview)' };
  // A server without audience support returns none; the token may then be for any audience.
  if (!listOf(status.audiences).includes(audience)) return { failure: `the token must be for audience ${audience}` };
  const { username, groups, extra } = isObject(status.user) ? status.user : {};
  const isAccount = listOf(groups).includes('system:serviceaccounts');
  const accountIdentity = identityOfAccount(isAccount ? username : undefined, trustDomain());
  if ('failure' in accountIdentity) return accountIdentity;
  const ids = listOf(isObject(extra) ? extra[idOfToken] : undefined).map((id) => scalarText(id).replace(/^JTI=/, ''));
  return ids.some((id) => isRevoked?.(id) === true) ? { failure: 'the token is revoked' } : accountIdentity;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
