import { create } from '@bufbuild/protobuf';
import {
  type AccessLog,
  type AccessLogFilterSchema,
  AccessLogSchema,
} from '../../../gen/envoy/config/accesslog/v3/accesslog_pb.ts';
import { AccessLogType } from '../../../gen/envoy/data/accesslog/v3/accesslog_pb.ts';
import { FileAccessLogSchema } from '../../../gen/envoy/extensions/access_loggers/file/v3/file_pb.ts';
import { ExpressionFilterSchema } from '../../../gen/envoy/extensions/access_loggers/filters/cel/v3/cel_pb.ts';
import type { TcpProxySchema } from '../../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { FileAccessLogProvider } from '../../../model/mesh/extension-providers.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { type ConnectionLog, telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import { formatOfMesh, formatOfProvider } from './access-log-format.ts';
import type { LoggedBy } from './access-log-services.ts';
import {
  httpAccessLogService,
  meshAccessLogServices,
  openTelemetryLog,
  tcpAccessLogService,
} from './access-log-services.ts';
import { countsOpenConnections, metricsLogs } from './metrics-log.ts';

type FilterInit = Init<typeof AccessLogFilterSchema>;

/** Provider that every mesh defines by default. */
const builtInProvider = 'envoy';

export function accessLogs(context: ConnectionContext, loggedBy: LoggedBy): AccessLog[] {
  const { push } = context;
  const { logs, settings } = telemetryOf(context, sideOf(context.direction));
  const metricsAccessLogs = metricsLogs(context, loggedBy).map((logger) => create(AccessLogSchema, logger));
  const reportsOften = loggedBy === 'connections' && countsOpenConnections(context);
  const applicableLogs = logs.flatMap((log) =>
    loggersOf(log, push.mesh, loggedBy, settings.accessLogService !== '').map((logger) =>
      create(AccessLogSchema, { ...logger, ...withFilter(log, loggedBy, reportsOften) }),
    ),
  );
  return [...applicableLogs, ...metricsAccessLogs];
}

/** Reports open connections to the agent, which counts their bytes. Other logs have only one entry, at the end of a connection. */
export function connectionReports(context: ConnectionContext): Pick<Init<typeof TcpProxySchema>, 'accessLogOptions'> {
  if (!countsOpenConnections(context)) return {};
  const { reportingIntervalMs } = telemetryOf(context, sideOf(context.direction));
  const accessLogFlushInterval = duration(reportingIntervalMs);
  return { accessLogOptions: { accessLogFlushInterval, flushAccessLogOnConnected: true } };
}

/** Logs connections that match no filter chain of a listener. No other log contains them. */
export function listenerAccessLogs(context: ConnectionContext): AccessLog[] {
  return context.push.mesh.disableEnvoyListenerLog ? [] : accessLogs(context, 'listener');
}

function loggersOf(
  { provider, cluster = '' }: ConnectionLog,
  mesh: MeshConfig,
  loggedBy: LoggedBy,
  hasService: boolean,
): TypedExtension[] {
  if (provider === undefined) {
    const { accessLogFile: path } = mesh;
    return [
      ...(path === '' ? [] : [fileLog(path, formatOfMesh(mesh))]),
      ...(mesh.enableEnvoyAccessLogService && hasService ? meshAccessLogServices(loggedBy) : []),
    ];
  }
  switch (provider.type) {
    case 'envoyFileAccessLog':
      return [fileLog(provider.settings.path, formatOfFile(provider.name, provider.settings, mesh))];
    case 'envoyHttpAls':
      return [httpAccessLogService(provider.settings, cluster)];
    case 'envoyTcpAls':
      return [tcpAccessLogService(provider.settings, cluster)];
    case 'envoyOtelAls':
      return [openTelemetryLog(provider.settings, cluster)];
    default:
      return [];
  }
}

type FormatInit = ReturnType<typeof formatOfMesh>;

function fileLog(path: string, format: FormatInit): TypedExtension {
  return typedExtension('envoy.access_loggers.file', FileAccessLogSchema, {
    path,
    accessLogFormat: { case: 'logFormat', value: format },
  });
}

function formatOfFile(
  name: string,
  { logFormat, omitEmptyValues }: FileAccessLogProvider,
  mesh: MeshConfig,
): FormatInit {
  const format = name === builtInProvider && !logFormat ? formatOfMesh(mesh) : formatOfProvider(logFormat);
  return omitEmptyValues ? { ...format, omitEmptyValues } : format;
}

function withFilter(
  { filter: expression }: ConnectionLog,
  loggedBy: LoggedBy,
  logsOnlyConnectionEnds: boolean,
): { filter?: FilterInit } {
  const filters = [
    ...(logsOnlyConnectionEnds ? [connectionEndFilter] : []),
    ...(loggedBy === 'listener' ? [noRouteFilter] : []),
    ...(expression === undefined ? [] : [celFilter(expression)]),
  ];
  if (filters.length < 2) return filters.length === 0 ? {} : { filter: filters[0]! };
  return { filter: { filterSpecifier: { case: 'andFilter', value: { filters } } } };
}

const noRouteFilter: FilterInit = { filterSpecifier: { case: 'responseFlagFilter', value: { flags: ['NR'] } } };

const connectionEndFilter: FilterInit = {
  filterSpecifier: { case: 'logTypeFilter', value: { types: [AccessLogType.TcpConnectionEnd] } },
};

function celFilter(expression: string): FilterInit {
  const extension = typedExtension('envoy.access_loggers.extension_filters.cel', ExpressionFilterSchema, {
    expression,
  });
  return { filterSpecifier: { case: 'extensionFilter', value: extension } };
}
