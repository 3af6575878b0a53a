/** The service account of a bearer token, by the word of the API server that signed it (spec/discovery.md §7.7, Kubernetes). */

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
  /** Of the own cluster: tokens whose clients say of no cluster that they are of are its own. */
  readonly server: Reviewer;
  /** Names of the own cluster that proxies may call it by. */
  readonly clusters: readonly string[];
  /** Of another cluster, by a name that proxies may call it by; undefined: it is none of the mesh's. Absent: there is no other. */
  readonly remoteServer?: (cluster: string) => Reviewer | undefined;
  /** One that the token must be for. */
  readonly audience: string;
  /** Of the mesh, now: a token says nothing of it. */
  readonly trustDomain: () => string;
  /** Whether a token was taken back, by its id. */
  readonly isRevoked?: (id: string) => boolean;
}

/** The caller waits for the answer, as long as for a handshake. */
const answerMs = 5_000;
/** Reviews by one API server at a time: unknown clients must not keep it busy; a server that does not respond delays no other. */
const maxReviews = 64;
/** Of one address: slots are left for other addresses while the API server is slow. */
const maxReviewsOfAddress = 48;
/** Reviews that wait for one API server, of all addresses; beyond it the address with the most gives one up. */
const maxWaitingReviews = 1_000;
/** Its client has given up by then. */
const maxWaitMs = 10_000;
/** Characters of a claimed subject: those of Kubernetes have at most 340. */
const maxSubject = 400;
/** By which agents say of which cluster they are. */
const clusterHeader = 'clusterid';
/** It has its limit. */
const never = new AbortController().signal;
const idOfToken = 'authentication.kubernetes.io/credential-id';

export function tokenReview(options: TokenReviewOptions): Authenticator {
  const reviews = new WeakMap<Reviewer, FairTasks>();
  const review = async (server: Reviewer, token: string): Promise<Authentication> => {
    try {
      return identityIn(await reviewed(server, token, options), options);
    } catch (error) {
      // That it could not be asked says nothing of the token.
      return { failure: messageOf(error), ...(error instanceof ApiError && { isUnavailable: true }) };
    }
  };
  const ask = (server: Reviewer, token: string, host: string): Promise<Authentication> => {
    const tasks = reviews.get(server) ?? newTasks();
    reviews.set(server, tasks);
    const until = performance.now() + maxWaitMs;
    return tasks.do<Authentication>({
      key: shareOf(host, token),
      run: async (settle) => settle(performance.now() > until ? tooMany : await review(server, token)),
      reject: () => tooMany,
    });
  };
  return {
    name: 'TokenReview',
    async authenticate(peer): Promise<Authentication> {
      const shown = tokenOf(peer);
      if ('failure' in shown) return shown;
      const foreign = [...new Set(peer.metadata(clusterHeader))].filter(
        (cluster) => !options.clusters.includes(cluster),
      );
      const [cluster, ...more] = foreign;
      const server = cluster === undefined ? options.server : options.remoteServer?.(cluster);
      if (server === undefined || more.length > 0)
        return { failure: `unknown cluster ${JSON.stringify(foreign.join().slice(0, 100))}` };
      return ask(server, shown.token, peer.host);
    },
  };
}

const tooMany: Authentication = { failure: 'too many TokenReviews are running, retry later', isUnavailable: true };

function newTasks(): FairTasks {
  return new FairTasks({
    maxRunning: maxReviews,
    maxRunningOfKey: maxReviewsOfAddress,
    maxWaiting: maxWaitingReviews,
  });
}

/**
 * Addresses take turns, as nothing else of the client is verified yet; behind an address that many clients share, the namespaces and accounts
 * that their tokens claim.
 */
function shareOf(host: string, token: string): ShareKey {
  const subject = claimedSubject(token);
  return [addressGroup(host), subject.split(':')[2] ?? '', subject];
}

/** Not verified. */
function claimedSubject(token: string): string {
  try {
    return decodeJwt(token).sub?.slice(0, maxSubject) ?? '';
  } catch {
    return '';
  }
}

async function reviewed(server: Reviewer, token: string, { audience }: TokenReviewOptions): Promise<unknown> {
  const spec = { token, audiences: [audience] };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
  const { status } = await server.request({ method: 'POST', resource: tokenReviews, body, timeoutMs: answerMs }, never);
  return status;
}

function identityIn(status: unknown, { audience, trustDomain, isRevoked }: TokenReviewOptions): Authentication {
  if (!isObject(status) || status.authenticated !== true)
    return { failure: 'the API server rejected the token (TokenReview)' };
  // A server that knows nothing of audiences names none: the token may be for anybody.
  if (!listOf(status.audiences).includes(audience)) return { failure: `the token must be for audience ${audience}` };
  const { username, groups, extra } = isObject(status.user) ? status.user : {};
  const isAccount = listOf(groups).includes('system:serviceaccounts');
  const found = identityOfAccount(isAccount ? username : undefined, trustDomain());
  if ('failure' in found) return found;
  const ids = listOf(isObject(extra) ? extra[idOfToken] : undefined).map((id) => scalarText(id).replace(/^JTI=/, ''));
  return ids.some((id) => isRevoked?.(id) === true) ? { failure: 'the token is revoked' } : found;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
