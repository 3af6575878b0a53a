/** Configures access logs that are sent to a service with Envoy's gRPC protocol or OpenTelemetry. */
import type { JsonValue } from '@bufbuild/protobuf';
import { ApiVersion } from '../../../gen/envoy/config/core/v3/config_source_pb.ts';
import type { GrpcServiceSchema } from '../../../gen/envoy/config/core/v3/grpc_service_pb.ts';
import {
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from '../../../gen/envoy/extensions/access_loggers/grpc/v3/als_pb.ts';
import { OpenTelemetryAccessLogConfigSchema } from '../../../gen/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb.ts';
import type { AnyValueSchema, KeyValueListSchema } from '../../../gen/opentelemetry/proto/common/v1/common_pb.ts';
import type { GrpcAccessLogProvider, OpenTelemetryAccessLogProvider } from '../../../model/mesh/extension-providers.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { parseOutboundClusterName } from '../../traffic/resource-names.ts';
import { formattersOf, textFormat } from './access-log-format.ts';

/** Static cluster in the bootstrap for `envoyAccessLogService` of the proxy configuration. */
const staticCluster = 'envoy_accesslog_service';

const httpLogName = 'http_envoy_accesslog';
const tcpLogName = 'tcp_envoy_accesslog';
const listenerLogName = 'listener_envoy_accesslog';

/** Access logs of `enableEnvoyAccessLogService`. */
export function meshAccessLogServices(loggedBy: LoggedBy): TypedExtension[] {
  const settings = { logName: loggedBy === 'listener' ? listenerLogName : '' };
  return [
    loggedBy === 'requests'
      ? httpAccessLogService(settings, staticCluster)
      : tcpAccessLogService(settings, staticCluster),
  ];
}

type Settings = Partial<GrpcAccessLogProvider>;

export function httpAccessLogService(settings: Settings, cluster: string): TypedExtension {
  return typedExtension('envoy.access_loggers.http_grpc', HttpGrpcAccessLogConfigSchema, {
    commonConfig: commonConfig(settings, settings.logName || httpLogName, cluster),
    additionalRequestHeadersToLog: [...(settings.additionalRequestHeadersToLog ?? [])],
    additionalResponseHeadersToLog: [...(settings.additionalResponseHeadersToLog ?? [])],
    additionalResponseTrailersToLog: [...(settings.additionalResponseTrailersToLog ?? [])],
  });
}

export function tcpAccessLogService(settings: Settings, cluster: string): TypedExtension {
  return typedExtension('envoy.access_loggers.tcp_grpc', TcpGrpcAccessLogConfigSchema, {
    commonConfig: commonConfig(settings, settings.logName || tcpLogName, cluster),
  });
}

export function openTelemetryLog(
  { logName, logFormat = {} }: OpenTelemetryAccessLogProvider,
  cluster: string,
): TypedExtension {
  const body = logFormat.text || textFormat;
  const { labels } = logFormat;
  return typedExtension('envoy.access_loggers.open_telemetry', OpenTelemetryAccessLogConfigSchema, {
    commonConfig: commonConfig({}, logName || 'otel_envoy_accesslog', cluster),
    disableBuiltinLabels: true,
    body: { value: { case: 'stringValue', value: body } },
    ...(labels && { attributes: keyValues(labels as Readonly<Record<string, JsonValue>>) }),
    formatters: formattersOf(body + JSON.stringify(labels ?? '')),
  });
}

function commonConfig(settings: Settings, logName: string, cluster: string) {
  return {
    logName,
    grpcService: grpcService(cluster),
    transportApiVersion: ApiVersion.V3,
    filterStateObjectsToLog: [...(settings.filterStateObjectsToLog ?? [])],
  };
}

export function grpcService(clusterName: string): Init<typeof GrpcServiceSchema> {
  const authority = parseOutboundClusterName(clusterName)?.host;
  return { targetSpecifier: { case: 'envoyGrpc', value: { clusterName, ...(authority && { authority }) } } };
}

function keyValues(fields: Readonly<Record<string, JsonValue>>): Init<typeof KeyValueListSchema> {
  return { values: Object.entries(fields).map(([key, value]) => ({ key, value: anyValue(value) })) };
}

function anyValue(value: JsonValue): Init<typeof AnyValueSchema> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return { value: { case: 'kvlistValue', value: keyValues(value) } };
  }
  if (Array.isArray(value)) return { value: { case: 'arrayValue', value: { values: value.map(anyValue) } } };
  return { value: { case: 'stringValue', value: String(value) } };
}

/** Source of log entries: requests, connections, or connections without a filter chain. */
export type LoggedBy = 'requests' | 'connections' | 'listener';
