import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import {
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpConnectionManager_CodecType,
  HttpConnectionManagerSchema,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import { adsConfigSource } from '../messages/config-source-message.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import type { HttpConnectionManagerOptions } from './http-filters/contributor.ts';
import { httpFilters } from './http-filters/index.ts';
import { accessLogs } from './observability/access-log.ts';
import { tracingFields } from './observability/hcm-tracing.ts';
import { requestHeaders } from './request-headers.ts';

type ManagerInit = Init<typeof HttpConnectionManagerSchema>;

export function httpConnectionManager(
  context: ConnectionContext,
  options: HttpConnectionManagerOptions,
): TypedExtension {
  const { direction, listener, push } = context;
  const { http10, absoluteUrl, http3 } = options;
  const prefix = direction === 'inbound' ? 'inbound' : 'outbound';
  return typedExtension('envoy.filters.network.http_connection_manager', HttpConnectionManagerSchema, {
    statPrefix: `${prefix}_${listener};`,
    routeSpecifier: routeSpecifier(options.routes),
    httpFilters: httpFilters(context, options),
    accessLog: accessLogs(context, 'requests'),
    upgradeConfigs: [{ upgradeType: 'websocket' }],
    streamIdleTimeout: duration(0),
    proxy100Continue: true,
    ...pathNormalization(push.mesh),
    ...requestHeaders(context),
    ...tracingFields(context),
    ...(http3 && { codecType: HttpConnectionManager_CodecType.HTTP3, http3ProtocolOptions: {} }),
    ...((http10 || absoluteUrl) && {
      httpProtocolOptions: {
        acceptHttp10: http10 ?? false,
        ...(absoluteUrl && { allowAbsoluteUrl: true }),
      },
    }),
  });
}

function routeSpecifier(routes: string | RouteConfiguration): NonNullable<ManagerInit['routeSpecifier']> {
  if (typeof routes !== 'string') return { case: 'routeConfig', value: routes };
  return { case: 'rds', value: { routeConfigName: routes, configSource: adsConfigSource } };
}

function pathNormalization(mesh: MeshConfig): ManagerInit {
  const { normalization } = mesh.pathNormalization;
  const decode = normalization === 'DECODE_AND_MERGE_SLASHES';
  return {
    normalizePath: normalization !== 'NONE',
    mergeSlashes: decode || normalization === 'MERGE_SLASHES',
    pathWithEscapedSlashesAction: decode ? EscapedSlashes.UNESCAPE_AND_FORWARD : EscapedSlashes.KEEP_UNCHANGED,
  };
}
