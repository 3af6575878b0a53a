import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { HttpConnectionManagerOptions, HttpFilterContributor, HttpFilterInit } from './contributor.ts';
import { cors } from './cors.ts';
import { dynamicForwardProxy } from './dynamic-forward-proxy.ts';
import { extAuthz } from './ext-authz.ts';
import { fault } from './fault.ts';
import { grpcStats } from './grpc-stats.ts';
import { grpcWeb } from './grpc-web.ts';
import { alpn, metadataExchange, stats } from './istio.ts';
import { jwt } from './jwt.ts';
import { peerClaim } from './peer-claim.ts';
import { rbac } from './rbac.ts';
import { router } from './router.ts';
import { wasm, wasmAuthn, wasmAuthz, wasmStats } from './wasm.ts';

/** In order of execution; the router is the terminal filter. */
const contributors: readonly HttpFilterContributor[] = [
  metadataExchange,
  peerClaim,
  extAuthz,
  wasmAuthn,
  jwt,
  wasmAuthz,
  rbac,
  wasmStats,
  wasm,
  grpcWeb,
  grpcStats,
  alpn,
  fault,
  cors,
  stats,
  dynamicForwardProxy,
  router,
];

export function httpFilters(context: ConnectionContext, options: HttpConnectionManagerOptions): HttpFilterInit[] {
  return contributors.flatMap((contributor) => contributor(context, options));
}
