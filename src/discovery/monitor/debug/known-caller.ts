/** Authenticates remote HTTP callers in the same way as xDS streams. */

import { singleWorkloadOf } from '../../../identity/spiffe-id.ts';
import { type Authenticator, authenticate } from '../../xds/access/authenticator.ts';
import type { HttpRequest } from '../http/http-server.ts';
import type { DebugAccess } from './debug-access.ts';

/** Namespace of the caller's only workload identity. HTTP is served without TLS, so callers authenticate by token, not by certificate. */
export function callerNamespace(authenticators: readonly Authenticator[]): NonNullable<DebugAccess['namespaceOf']> {
  return async ({ headers, peer }: HttpRequest) => {
    const host = peer.remoteAddress ?? '';
    const result = await authenticate(authenticators, {
      ...{ host, address: host },
      metadata: (name) => [headers[name] ?? []].flat(),
      certificate: undefined,
    });
    if ('failure' in result) return undefined;
    return singleWorkloadOf(result.identities)?.namespace;
  };
}
