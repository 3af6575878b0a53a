/** Who a caller of another host is, as the authenticators of xDS streams find out from its request. */

import { oneWorkloadOf } from '../../../identity/spiffe-id.ts';
import { type Authenticator, authenticate } from '../../xds/access/authenticator.ts';
import type { HttpRequest } from '../http/http-server.ts';
import type { DebugAccess } from './debug-access.ts';

/**
 * The namespace of the only workload among the caller's identities. HTTP is served without TLS, so there is no certificate to
 * show; a token is.
 */
export function callerNamespace(authenticators: readonly Authenticator[]): NonNullable<DebugAccess['namespaceOf']> {
  return async ({ headers, peer }: HttpRequest) => {
    const host = peer.remoteAddress ?? '';
    const answer = await authenticate(authenticators, {
      ...{ host, address: host },
      metadata: (name) => [headers[name] ?? []].flat(),
      certificate: undefined,
    });
    if ('failure' in answer) return undefined;
    return oneWorkloadOf(answer.identities)?.namespace;
  };
}
