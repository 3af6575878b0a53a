/** Configures the access log from which the agent computes standard metrics. */

import { ApiVersion } from '../../../gen/envoy/config/core/v3/config_source_pb.ts';
import {
  type CommonGrpcAccessLogConfigSchema,
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from '../../../gen/envoy/extensions/access_loggers/grpc/v3/als_pb.ts';
import type { CustomTagSchema } from '../../../gen/envoy/type/tracing/v3/custom_tag_pb.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import { type StandardMetricId, standardMetrics } from '../../../model/standard-metrics/standard-metrics.ts';
import {
  accessLogCluster,
  entryTags,
  expressionTag,
  logNameOf,
  peerStateKey,
} from '../../../model/standard-metrics/stream-rules.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import type { ReportedMetrics } from '../../telemetry/reported-metrics.ts';
import { workloadLabelsOf } from '../../telemetry/workload-labels.ts';
import { grpcService, type LoggedBy } from './access-log-services.ts';
import { statsLog } from './stats-log.ts';

type TagInit = Init<typeof CustomTagSchema>;

const maxCachedLogs = 256;
const cachedLogs = new Map<string, TypedExtension>();

export function metricsLogs(context: ConnectionContext, loggedBy: LoggedBy): TypedExtension[] {
  const { standardMetrics: reportedMetrics } = telemetryOf(context, sideOf(context.direction));
  if (reportedMetrics === undefined || loggedBy === 'listener') return [];
  const protocol = loggedBy === 'requests' ? 'http' : 'tcp';
  const ids = (Object.keys(standardMetrics) as StandardMetricId[]).filter(
    (id) => standardMetrics[id].protocol === protocol,
  );
  if (ids.every((id) => reportedMetrics.rules[id]?.disabled === true)) return [];
  const { STANDARD_METRICS: metricsMode } = context.shape.metadata;
  const side = context.direction === 'inbound' ? 'inbound' : 'outbound';
  const workloadLabels = metricsMode === 'stats' ? workloadLabelsOf(context.shape) : undefined;
  const key = JSON.stringify([protocol, metricsMode, side, reportedMetrics, workloadLabels]);
  let cachedLog = cachedLogs.get(key);
  if (cachedLog === undefined) {
    cachedLog = workloadLabels
      ? statsLog(protocol, side, reportedMetrics, workloadLabels)
      : metricsLog(protocol, side, reportedMetrics, metricsMode === 'expressions');
    setBounded(cachedLogs, key, cachedLog, maxCachedLogs);
  }
  return [cachedLog];
}

/** Whether open connections are reported. The agent adds the differences between reports, but Envoy would add the totals. */
export function countsOpenConnections(context: ConnectionContext): boolean {
  return context.shape.metadata.STANDARD_METRICS !== 'stats' && metricsLogs(context, 'connections').length > 0;
}

function metricsLog(
  protocol: 'http' | 'tcp',
  side: 'inbound' | 'outbound',
  { rules, expressions }: ReportedMetrics,
  hasFormats: boolean,
): TypedExtension {
  const commonConfig: Init<typeof CommonGrpcAccessLogConfigSchema> = {
    logName: logNameOf({ reporter: side === 'inbound' ? 'destination' : 'source', metrics: rules }),
    grpcService: grpcService(accessLogCluster),
    transportApiVersion: ApiVersion.V3,
    bufferFlushInterval: duration(1_000),
    bufferSizeBytes: 65_536,
    customTags: [
      metadataTag(entryTags.services, 'cluster', 'services'),
      ...(side === 'outbound' ? endpointTags(hasFormats) : []),
      ...(hasFormats
        ? expressions.map((expression, expressionIndex) =>
            formatTag(expressionTag(expressionIndex), `%CEL(${expression})%`),
          )
        : []),
    ],
    ...(side === 'inbound' && protocol === 'http' && { filterStateObjectsToLog: [peerStateKey] }),
  };
  if (protocol === 'tcp') {
    return typedExtension('envoy.access_loggers.tcp_grpc', TcpGrpcAccessLogConfigSchema, { commonConfig });
  }
  return typedExtension('envoy.access_loggers.http_grpc', HttpGrpcAccessLogConfigSchema, {
    commonConfig,
    additionalRequestHeadersToLog: ['content-type'],
    additionalResponseHeadersToLog: ['grpc-status'],
    additionalResponseTrailersToLog: ['grpc-status'],
  });
}

function endpointTags(hasFormats: boolean): TagInit[] {
  return [
    metadataTag(entryTags.workload, 'host', 'workload'),
    ...(hasFormats
      ? [
          formatTag(entryTags.upstreamPeer, '%UPSTREAM_PEER_URI_SAN%'),
          formatTag(entryTags.upstreamLocal, '%UPSTREAM_LOCAL_URI_SAN%'),
        ]
      : []),
  ];
}

function metadataTag(tag: string, peer: 'cluster' | 'host', field: string): TagInit {
  return {
    tag,
    type: {
      case: 'metadata',
      value: {
        kind: { kind: { case: peer, value: {} } },
        metadataKey: { key: 'istio', path: [{ segment: { case: 'key', value: field } }] },
      },
    },
  };
}

function formatTag(tag: string, value: string): TagInit {
  return { tag, type: { case: 'value', value } };
}
