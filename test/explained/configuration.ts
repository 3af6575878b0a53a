/**
 * Instruments the resources of a golden case for both the real Envoy and explain: adds access logs, and replaces keys
 * by known key pairs.
 */
import { create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { type Any, anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { type AccessLog, AccessLogSchema } from '../../src/gen/envoy/config/accesslog/v3/accesslog_pb.ts';
import type { Cluster } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { FilterChain } from '../../src/gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../src/gen/envoy/config/route/v3/route_pb.ts';
import { FileAccessLogSchema } from '../../src/gen/envoy/extensions/access_loggers/file/v3/file_pb.ts';
import { JwtAuthenticationSchema } from '../../src/gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { HttpConnectionManagerSchema } from '../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { TcpProxySchema } from '../../src/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { ProxyConfiguration } from '../../src/networking/explain/proxy-configuration.ts';
import type { EnvoyResource } from '../../src/networking/index.ts';
import type { Section } from '../networking/case.ts';
import { logFormat } from './differences.ts';

export interface KnownKeys {
  /** A JWKS that replaces the keys of every provider. */
  readonly keySet: string;
}

/** Changes the messages in place. */
export function instrument(
  generatedResources: Record<Section, EnvoyResource[]>,
  logFile: string,
  { keySet }: KnownKeys,
): void {
  for (const { message } of generatedResources.listeners) {
    const listener = message as Listener;
    listener.accessLog = [logTo(logFile, 'connection')];
    for (const chain of chainsOf(listener)) {
      for (const { configType } of chain.filters) {
        if (configType.case !== 'typedConfig') continue;
        configType.value = changeMessage(configType.value, HttpConnectionManagerSchema, (manager) => {
          manager.accessLog = [logTo(logFile, 'stream')];
          for (const filter of manager.httpFilters) {
            if (filter.configType.case !== 'typedConfig') continue;
            filter.configType.value = changeMessage(
              filter.configType.value,
              JwtAuthenticationSchema,
              ({ providers }) => {
                for (const { jwksSourceSpecifier: source } of Object.values(providers)) {
                  const specifier = source.case === 'localJwks' ? source.value.specifier : undefined;
                  // The placeholder of a key set that was not fetched has no private keys, so it is not replaced.
                  if (specifier?.case === 'inlineString' && !specifier.value.includes('"kid":"unknown"'))
                    specifier.value = keySet;
                }
              },
            );
          }
        });
        configType.value = changeMessage(configType.value, TcpProxySchema, (proxy) => {
          proxy.accessLog = [logTo(logFile, 'stream')];
        });
      }
    }
  }
}

export function configurationOf(generatedResources: Record<Section, EnvoyResource[]>): ProxyConfiguration {
  const messagesByName = <Message>(resources: readonly EnvoyResource[]): Map<string, Message> =>
    new Map(resources.map(({ name, message }) => [name, message as Message]));
  return {
    listeners: generatedResources.listeners.map(({ message }) => message as Listener),
    routes: messagesByName<RouteConfiguration>(generatedResources.routes),
    clusters: messagesByName<Cluster>(generatedResources.clusters),
    endpoints: messagesByName<ClusterLoadAssignment>(generatedResources.endpoints),
  };
}

export function chainsOf({ filterChains, defaultFilterChain }: Listener): readonly FilterChain[] {
  return [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])];
}

function changeMessage<Desc extends DescMessage>(
  packed: Any,
  schema: Desc,
  change: (message: MessageShape<Desc>) => void,
): Any {
  const message = anyUnpack(packed, schema);
  if (message === undefined) return packed;
  change(message as MessageShape<Desc>);
  return anyPack(schema, message as MessageShape<Desc>);
}

function logTo(path: string, level: 'stream' | 'connection'): AccessLog {
  const json = { ...logFormat, level };
  const value = anyPack(
    FileAccessLogSchema,
    create(FileAccessLogSchema, {
      path,
      accessLogFormat: { case: 'logFormat', value: { format: { case: 'jsonFormat', value: json } } },
    }),
  );
  return create(AccessLogSchema, { name: 'explained', configType: { case: 'typedConfig', value } });
}
