import { create } from '@bufbuild/protobuf';
import { type Filter, FilterSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import { httpConnectionManager } from '../http-connection-manager.ts';
import type { HttpConnectionManagerOptions } from '../http-filters/contributor.ts';
import type { ConnectionUse, NetworkFilterContributor, TcpProxyOptions } from './contributor.ts';
import { extAuthz } from './ext-authz.ts';
import { metadataExchange, stats } from './istio.ts';
import { mongoProxy } from './mongo-proxy.ts';
import { mysqlProxy } from './mysql-proxy.ts';
import { rbac } from './rbac.ts';
import { redisProxy } from './redis-proxy.ts';
import { sniDynamicForwardProxy } from './sni-dynamic-forward-proxy.ts';
import { tcpProxy } from './tcp-proxy.ts';
import { wasmAfter, wasmBeforeRbac } from './wasm.ts';

const requestFiltersOf: NetworkFilterContributor = (context, use) =>
  use.kind === 'http' ? [httpConnectionManager(context, use)] : [];

/** In order of execution; the last filter is terminal. */
const contributors: readonly NetworkFilterContributor[] = [
  metadataExchange,
  extAuthz,
  wasmBeforeRbac,
  rbac,
  wasmAfter,
  stats,
  mongoProxy,
  mysqlProxy,
  redisProxy,
  sniDynamicForwardProxy,
  tcpProxy,
  requestFiltersOf,
];

export function tcpFilters(context: ConnectionContext, options: TcpProxyOptions): Filter[] {
  return networkFilters(context, { ...options, kind: 'tcp' });
}

export function requestFilters(context: ConnectionContext, options: HttpConnectionManagerOptions): Filter[] {
  return networkFilters(context, { ...options, kind: 'http' });
}

function networkFilters(context: ConnectionContext, use: ConnectionUse): Filter[] {
  return contributors.flatMap((contributor) => contributor(context, use).map((filter) => create(FilterSchema, filter)));
}
