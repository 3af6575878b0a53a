/** The service account of a bearer token, by the word of the API server that signed it (spec/discovery.md §7.7, Kubernetes). */

import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import { scalarText } from '../../runtime/scalar-text.ts';
import type { Authentication, Authenticator } from '../ads/authentication.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { tokenReviews } from '../kubernetes/api-resource.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
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
/** Questions to one API server at a time: strangers must not keep it busy, nor what else is asked of it; one that does not answer holds up no other. */
const mostQuestions = 64;
/** By which agents say of which cluster they are. */
const clusterHeader = 'clusterid';
/** It has its limit. */
const never = new AbortController().signal;
const idOfToken = 'authentication.kubernetes.io/credential-id';

export function tokenReview(options: TokenReviewOptions): Authenticator {
  const questions = new WeakMap<Reviewer, number>();
  const ask = async (server: Reviewer, token: string): Promise<Authentication> => {
    const before = questions.get(server) ?? 0;
    if (before >= mostQuestions) return { failure: 'too many tokens are being reviewed', isUnavailable: true };
    questions.set(server, before + 1);
    try {
      return identityIn(await reviewed(server, token, options), options);
    } catch (error) {
      // That it could not be asked says nothing of the token.
      return { failure: messageOf(error), ...(error instanceof ApiError && { isUnavailable: true }) };
    } finally {
      questions.set(server, questions.get(server)! - 1);
    }
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
        return { failure: `cluster ${JSON.stringify(foreign.join().slice(0, 100))} is not known here` };
      return ask(server, shown.token);
    },
  };
}

async function reviewed(server: Reviewer, token: string, { audience }: TokenReviewOptions): Promise<unknown> {
  const spec = { token, audiences: [audience] };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
  const { status } = await server.request({ method: 'POST', resource: tokenReviews, body, timeoutMs: answerMs }, never);
  return status;
}

function identityIn(status: unknown, { audience, trustDomain, isRevoked }: TokenReviewOptions): Authentication {
  if (!isObject(status) || status.authenticated !== true) return { failure: 'the API server does not know the token' };
  // A server that knows nothing of audiences names none: the token may be for anybody.
  if (!listOf(status.audiences).includes(audience)) return { failure: `the token is not for ${audience}` };
  const { username, groups, extra } = isObject(status.user) ? status.user : {};
  const isAccount = listOf(groups).includes('system:serviceaccounts');
  const found = identityOfAccount(isAccount ? username : undefined, trustDomain());
  if ('failure' in found) return found;
  const ids = listOf(isObject(extra) ? extra[idOfToken] : undefined).map((id) => scalarText(id).replace(/^JTI=/, ''));
  return ids.some((id) => isRevoked?.(id) === true) ? { failure: 'the token was taken back' } : found;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
