/** The network filter that speaks HTTP (spec/discovery.md §8.4, HCM). */
import { create } from '@bufbuild/protobuf';
import { type Filter, FilterSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import {
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpConnectionManager_ForwardClientCertDetails as ForwardClientCert,
  HttpConnectionManagerSchema,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { MeshConfig } from '../../model/mesh-config.ts';
import { typedExtension } from '../any.ts';
import { adsConfigSource } from '../config-source.ts';
import { duration } from '../duration.ts';
import type { Init } from '../init.ts';
import { accessLogs } from './access-log.ts';
import { httpFilters } from './http-filters.ts';

type ManagerInit = Init<typeof HttpConnectionManagerSchema>;

export interface HttpConnectionManagerOptions {
  readonly direction: 'outbound' | 'inbound' | 'gateway';
  /** Name of the listener, or inbound of the filter chain. */
  readonly listener: string;
  /** A route configuration's name, to be asked for, or the configuration itself. */
  readonly routes: string | RouteConfiguration;
  readonly mesh: MeshConfig;
  readonly grpcWeb?: boolean;
  /** Metadata `HTTP10`: clients of HTTP/1.0 are served. */
  readonly http10?: boolean;
  /** A client that asks this listener as its proxy names the whole URL. */
  readonly absoluteUrl?: boolean;
}

export function httpConnectionManager(options: HttpConnectionManagerOptions): Filter {
  const { direction, mesh, http10, absoluteUrl } = options;
  const prefix = direction === 'inbound' ? 'inbound' : 'outbound';
  return create(
    FilterSchema,
    typedExtension('envoy.filters.network.http_connection_manager', HttpConnectionManagerSchema, {
      statPrefix: `${prefix}_${options.listener};`,
      routeSpecifier: routeSpecifier(options.routes),
      httpFilters: httpFilters({ grpcWeb: options.grpcWeb ?? false }),
      accessLog: accessLogs(mesh),
      upgradeConfigs: [{ upgradeType: 'websocket' }],
      streamIdleTimeout: duration(0),
      generateRequestId: true,
      proxy100Continue: true,
      ...pathNormalization(mesh),
      ...peer(direction),
      ...((http10 || absoluteUrl) && {
        httpProtocolOptions: {
          acceptHttp10: http10 ?? false,
          ...(absoluteUrl && { allowAbsoluteUrl: true }),
        },
      }),
    }),
  );
}

function routeSpecifier(routes: string | RouteConfiguration): NonNullable<ManagerInit['routeSpecifier']> {
  if (typeof routes !== 'string') return { case: 'routeConfig', value: routes };
  return { case: 'rds', value: { routeConfigName: routes, configSource: adsConfigSource } };
}

/** What is believed of, and told about, the client. */
function peer(direction: HttpConnectionManagerOptions['direction']): ManagerInit {
  switch (direction) {
    case 'outbound':
      return { useRemoteAddress: false, serverName: 'istio-envoy' };
    case 'inbound':
      return {
        useRemoteAddress: false,
        serverName: 'istio-envoy',
        serverHeaderTransformation: ServerHeader.PASS_THROUGH,
        forwardClientCertDetails: ForwardClientCert.APPEND_FORWARD,
        setCurrentClientCertDetails: { subject: true, dns: true, uri: true },
      };
    case 'gateway':
      return {
        useRemoteAddress: true,
        serverName: 'istio-envoy',
        forwardClientCertDetails: ForwardClientCert.SANITIZE_SET,
        setCurrentClientCertDetails: { subject: true, cert: true, dns: true, uri: true },
      };
  }
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
