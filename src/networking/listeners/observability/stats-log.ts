/** Configures standard metrics that Envoy computes itself, for proxies without chartpilot's agent. Their names begin with `envoy_`. */
import type { JsonObject } from '@bufbuild/protobuf';
import {
  connectionLabels,
  requestLabels,
  type StandardLabel,
  type StandardMetricId,
  standardMetrics,
  unknownLabel,
} from '../../../model/standard-metrics/standard-metrics.ts';
import type { LabelValue, MetricRule } from '../../../model/standard-metrics/stream-rules.ts';
import type { TypedExtension } from '../../messages/any.ts';
import { istioExtension } from '../../messages/istio-extensions.ts';
import type { ReportedMetrics } from '../../telemetry/reported-metrics.ts';
import type { ProxyMetricLabels } from '../../telemetry/workload-labels.ts';

const typedConfig = (name: string, fields: JsonObject = {}): JsonObject => ({
  '@type': `type.googleapis.com/${name}`,
  ...fields,
});

/** A matcher tree that replaces an empty value with `unknown`. A regular expression would take 40 µs per request. */
const unknownIfEmptyFormat: JsonObject = {
  matcher_tree: {
    input: {
      name: 'value',
      typed_config: typedConfig('envoy.extensions.matching.common_inputs.stats.v3.StatTagValueInput'),
    },
    exact_match_map: {
      map: Object.fromEntries(
        ['', '-'].map((emptyText) => [
          emptyText,
          {
            action: {
              name: 'unknown',
              typed_config: typedConfig('envoy.extensions.matching.actions.transform_stat.v3.TransformStat', {
                update_tag: { new_tag_value: unknownLabel },
              }),
            },
          },
        ]),
      ),
    },
  },
};

/** All loggers of a proxy share this scope and its limits. Its name is the prefix of the metrics. */
const statsScope: JsonObject = {
  prefix: 'istio',
  sharing_name: 'istio',
  enable_eviction: true,
  max_counters: 2_000,
  max_histograms: 500,
};

const metricValues: Readonly<Record<StandardMetricId, JsonObject | undefined>> = {
  REQUEST_COUNT: { value_fixed: 1 },
  REQUEST_DURATION: { unit: 'Milliseconds', value_format: '%DURATION%' },
  REQUEST_SIZE: { unit: 'Bytes', value_format: '%BYTES_RECEIVED%' },
  RESPONSE_SIZE: { unit: 'Bytes', value_format: '%BYTES_SENT%' },
  // The logger receives only one entry per connection, because it would add the totals of later entries.
  TCP_OPENED_CONNECTIONS: undefined,
  TCP_CLOSED_CONNECTIONS: { value_fixed: 1 },
  TCP_SENT_BYTES: { value_format: '%BYTES_SENT%' },
  TCP_RECEIVED_BYTES: { value_format: '%BYTES_RECEIVED%' },
};

export function statsLog(
  protocol: 'http' | 'tcp',
  side: 'inbound' | 'outbound',
  { rules, expressions }: ReportedMetrics,
  workloadLabels: ProxyMetricLabels,
): TypedExtension {
  const formats = labelFormats(protocol, side, workloadLabels);
  const metricsOfType = (metricType: 'counter' | 'histogram'): JsonObject[] =>
    (Object.keys(standardMetrics) as StandardMetricId[]).flatMap((id) => {
      const { name, type, protocol: metricProtocol } = standardMetrics[id];
      const value = metricValues[id];
      if (type !== metricType || metricProtocol !== protocol || value === undefined || rules[id]?.disabled) return [];
      return [{ stat: { name: name.replace(/^istio_/, ''), tags: tagsOf(formats, rules[id], expressions) }, ...value }];
    });
  return istioExtension('envoy.access_loggers.stats', 'envoy.extensions.access_loggers.stats.v3.Config', {
    stats_scope: statsScope,
    counters: metricsOfType('counter'),
    histograms: metricsOfType('histogram'),
  });
}

function tagsOf(
  formats: ReadonlyMap<string, string>,
  rule: MetricRule | undefined,
  expressions: readonly string[],
): JsonObject[] {
  const tagFormats = new Map(formats);
  for (const label of rule?.removed ?? []) tagFormats.delete(label);
  for (const [label, value] of Object.entries(rule?.set ?? {})) tagFormats.set(label, formatOf(value, expressions));
  return [...tagFormats].map(([name, format]) => ({
    name,
    value_format: format,
    // Istio also leaves these labels empty or `-`.
    ...(format.includes('%') && !emptyLabels.has(name) && { rules: unknownIfEmptyFormat }),
  }));
}

const emptyLabels: ReadonlySet<string> = new Set<StandardLabel>(['response_flags', 'grpc_response_status']);

const formatOf = (value: LabelValue, expressions: readonly string[]): string =>
  'text' in value ? escapedText(value.text) : `%CEL(${expressions[value.tag]})%`;

const escapedText = (text: string): string => text.replaceAll('%', '%%') || unknownLabel;

function labelFormats(
  protocol: 'http' | 'tcp',
  side: 'inbound' | 'outbound',
  workloadLabels: ProxyMetricLabels,
): ReadonlyMap<StandardLabel, string> {
  const service = (field: string): string =>
    `%CEL(xds.cluster_metadata.filter_metadata['istio']['services'][0]['${field}'])%`;
  const isSourceSide = side === 'outbound';
  const formats: Partial<Record<StandardLabel, string>> = {
    reporter: isSourceSide ? 'source' : 'destination',
    ...workloadFormats(isSourceSide ? 'source' : 'destination', workloadLabels),
    source_principal: isSourceSide ? '%UPSTREAM_LOCAL_URI_SAN%' : '%DOWNSTREAM_PEER_URI_SAN%',
    destination_principal: isSourceSide ? '%UPSTREAM_PEER_URI_SAN%' : '%DOWNSTREAM_LOCAL_URI_SAN%',
    destination_service: service('host'),
    destination_service_name: service('name'),
    destination_service_namespace: service('namespace'),
    request_protocol:
      protocol === 'tcp'
        ? 'tcp'
        : "%CEL('content-type' in request.headers && request.headers['content-type'].startsWith('application/grpc') ? 'grpc' : 'http')%",
    response_flags: '%RESPONSE_FLAGS%',
    connection_security_policy: isSourceSide ? unknownLabel : "%CEL(connection.mtls ? 'mutual_tls' : 'none')%",
    ...(protocol === 'http' && {
      response_code: '%RESPONSE_CODE%',
      grpc_response_status: '%GRPC_STATUS_NUMBER%',
    }),
  };
  const names = protocol === 'http' ? [...connectionLabels, ...requestLabels] : connectionLabels;
  return new Map(names.map((name) => [name, formats[name] ?? unknownLabel]));
}

function workloadFormats(
  workloadSide: 'source' | 'destination',
  workloadLabels: ProxyMetricLabels,
): Partial<Record<StandardLabel, string>> {
  return {
    [`${workloadSide}_workload`]: "%CEL(xds.node.metadata['WORKLOAD_NAME'])%",
    [`${workloadSide}_workload_namespace`]: escapedText(workloadLabels.namespace),
    [`${workloadSide}_canonical_service`]: escapedText(workloadLabels.service),
    [`${workloadSide}_canonical_revision`]: escapedText(workloadLabels.revision),
    [`${workloadSide}_app`]: escapedText(workloadLabels.app),
    [`${workloadSide}_version`]: escapedText(workloadLabels.version),
    [`${workloadSide}_cluster`]: escapedText(workloadLabels.cluster),
  };
}
