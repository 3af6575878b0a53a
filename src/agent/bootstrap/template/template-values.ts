/** Values of a bootstrap template, with the names of Istio's template. */

import { parseHostAndPort, proxyConfigNames, proxyConfigToJson } from '../../../model/mesh/proxy-config.ts';
import type { Position } from '../../../runtime/go-template/template-error.ts';
import { GoMap, GoStruct, type GoValue, goValueOf } from '../../../runtime/go-template/values.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { OptionErrors } from '../../../runtime/option-errors.ts';
import { type BootstrapFacts, lookupFamily } from '../bootstrap.ts';
import { statsChoices } from '../bootstrap-stats.ts';
import { typedMetadataKeys } from '../node-metadata.ts';

type Json = Record<string, unknown>;

interface BuiltInValues {
  readonly layered_runtime?: { readonly layers: readonly { readonly static_layer?: Json }[] };
  readonly static_resources?: { readonly clusters: readonly Cluster[] };
  readonly stats_sinks?: readonly { readonly name: string; readonly typed_config: Json }[];
  readonly stats_flush_interval?: string;
  readonly stats_eviction_interval?: string;
  readonly stats_config?: { readonly histogram_bucket_settings?: readonly Json[] };
  readonly overload_manager?: { readonly resource_monitors: readonly { readonly typed_config: Json }[] };
}

interface Cluster {
  readonly name: string;
  readonly load_assignment: { readonly endpoints: readonly { readonly lb_endpoints: readonly Endpoint[] }[] };
  readonly transport_socket?: Json;
  readonly upstream_connection_options?: Json;
}

interface Endpoint {
  readonly endpoint: { readonly address: { readonly socket_address?: Json } };
}

/** Most values are parts of the built-in bootstrap; `bootstrap` is all of it. Unset values are false in conditions. */
export function templateValues(
  facts: BootstrapFacts,
  builtIn: object,
  onUnknownInCondition: (name: string, at: Position) => void,
): GoStruct {
  const values = {
    bootstrap: builtIn,
    ...proxyValues(facts),
    ...statsValues(facts),
    ...builtInValues(builtIn),
    ...telemetryValues(builtIn),
    ...unsupportedValues,
  };
  return struct('the values of a bootstrap', values, onUnknownInCondition);
}

function struct(name: string, values: Json, onUnknownInCondition?: (name: string, at: Position) => void): GoStruct {
  const fields = Object.entries(values).map(([field, value]): [string, GoValue] => [
    field,
    value === undefined ? undefined : goValueOf(value),
  ]);
  return new GoStruct(name, fields, onUnknownInCondition);
}

/** As in Go, `index` returns an empty string for a missing key. */
function textMap(texts: unknown): GoMap {
  return new GoMap(Object.entries((texts ?? {}) as Record<string, string>), '');
}

function proxyValues(facts: BootstrapFacts): Json {
  const { node, config, local, dualStack } = facts;
  const { locality = {} } = node;
  const additionalAddresses = local.localhost === '::1' ? ['127.0.0.1', '0.0.0.0'] : ['::1', '::'];
  return {
    nodeID: node.id,
    nodeType: node.id.split('~', 1)[0],
    cluster: node.cluster,
    region: locality.region ?? '',
    zone: locality.zone ?? '',
    sub_zone: locality.sub_zone ?? '',
    meta_json_str: JSON.stringify(node.metadata),
    metadata: metadataStruct(node.metadata),
    config: configStruct(proxyConfigToJson(config)),
    pilot_SAN: JSON.stringify(sanMatchers(node.metadata.PILOT_SAN)),
    discovery_address: config.discoveryAddress,
    discovery_host: config.discoveryAddress.split(':')[0],
    pilot_grpc_address: addressJson(config.discoveryAddress),
    connect_timeout: `${facts.connectTimeoutMs / 1000}s`,
    localhost: local.localhost,
    wildcard: local.wildcard,
    dual_stack: dualStack,
    additional_localhost: dualStack ? additionalAddresses[0] : '',
    additional_wildcard: dualStack ? additionalAddresses[1] : '',
    dns_lookup_family: lookupFamily(facts),
    envoy_status_port: facts.envoyStatusPort,
    envoy_prometheus_port: facts.envoyPrometheusPort,
    sts_port: node.metadata.STS_PORT,
    envoy_metrics_stats_compression: facts.annotations['sidecar.istio.io/statsCompression'],
    stats_compression: facts.annotations['sidecar.istio.io/statsCompression'],
    outlier_log_path: facts.outlierLogPath,
    xds_socket: facts.xdsSocket,
    sds_socket: facts.secretSocket,
    workload_identity_socket_file: facts.secretSocket.split('/').at(-1),
    xds_type: facts.delta ? 'DELTA_GRPC' : 'GRPC',
    env: struct('env', { HOST_IP: facts.hostIp }),
  };
}

/** Templates use Go names, which are capitalized, or JSON names. */
function withCapitalizedNames(values: Json): Json {
  return Object.fromEntries(
    Object.entries(values).flatMap(([field, value]) => [
      [field, value],
      [field.charAt(0).toUpperCase() + field.slice(1), value],
    ]),
  );
}

const textMaps: ReadonlySet<string> = new Set(['proxyMetadata', 'runtimeValues']);

/** Unset fields are empty strings. */
function configStruct(config: Json): GoStruct {
  const values = Object.fromEntries(
    [...proxyConfigNames].map((name) => [
      name,
      textMaps.has(name) ? textMap(config[name]) : withBothNames(config[name] ?? ''),
    ]),
  );
  return struct('config', withCapitalizedNames(values));
}

function withBothNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBothNames);
  if (!isObject(value)) return value;
  return withCapitalizedNames(
    Object.fromEntries(Object.entries(value).map(([field, element]) => [field, withBothNames(element)])),
  );
}

/** By JSON name and Go name: `NAMESPACE` and `Namespace`. */
function metadataStruct(metadata: Json): GoStruct {
  const names = new Set([...typedMetadataKeys, ...Object.keys(metadata)]);
  const values = [...names].flatMap((name): [string, unknown][] => {
    const value = isObject(metadata[name]) && labels.has(name) ? textMap(metadata[name]) : (metadata[name] ?? '');
    return [
      [name, value],
      [goName(name), value],
    ];
  });
  return struct('metadata', Object.fromEntries(values));
}

const labels: ReadonlySet<string> = new Set(['LABELS', 'STATIC_LABELS', 'ANNOTATIONS', 'PLATFORM_METADATA']);

function goName(name: string): string {
  return name
    .split('_')
    .map((word) => (['ID', 'DNS', 'SAN', 'HTTP'].includes(word) ? word : word.charAt(0) + word.slice(1).toLowerCase()))
    .join('')
    .replace(/Ips$/, 'IPs');
}

function sanMatchers(names: unknown): object[] {
  return Array.isArray(names) ? names.map((exact: string) => ({ exact })) : [];
}

function addressJson(hostAndPort: string): string | undefined {
  const parsedAddress = parseHostAndPort(hostAndPort);
  return parsedAddress && JSON.stringify({ address: parsedAddress.host, port_value: parsedAddress.port });
}

/** Configurable statistics; Istio's template contains the constant ones. */
function statsValues(facts: BootstrapFacts): Json {
  const { extraTags, inclusion } = statsChoices(facts, new OptionErrors());
  return {
    extraStatTags: extraTags,
    inclusionPrefix: inclusion.inclusionPrefixes,
    inclusionSuffix: inclusion.inclusionSuffixes,
    inclusionRegexps: inclusion.inclusionRegexps,
  };
}

function builtInValues({ layered_runtime, ...otherValues }: BuiltInValues): Json {
  return {
    runtime_flags: JSON.stringify(layered_runtime?.layers[0]?.static_layer ?? {}),
    stats_flush_interval: otherValues.stats_flush_interval,
    stats_eviction_interval: otherValues.stats_eviction_interval,
    histogram_buckets: otherValues.stats_config?.histogram_bucket_settings,
    global_downstream_max_connections: connectionLimit(otherValues),
  };
}

/** Only the connection monitor has this field. */
function connectionLimit({ overload_manager }: Pick<BuiltInValues, 'overload_manager'>): unknown {
  return overload_manager?.resource_monitors
    .map(({ typed_config }) => typed_config.max_active_downstream_connections)
    .find((limit) => limit !== undefined);
}

function telemetryValues({ static_resources, stats_sinks = [] }: BuiltInValues): Json {
  const clusters = new Map((static_resources?.clusters ?? []).map((cluster) => [cluster.name, cluster]));
  const json = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));
  const addressOf = (name: string): string | undefined =>
    json(clusters.get(name)?.load_assignment.endpoints[0]?.lb_endpoints[0]?.endpoint.address.socket_address);
  const tls = (name: string): string | undefined => json(clusters.get(name)?.transport_socket);
  const keepalive = (name: string): string | undefined => json(clusters.get(name)?.upstream_connection_options);
  const statsd = stats_sinks.find(({ name }) => name === 'envoy.stat_sinks.statsd')?.typed_config.address;
  const service = (option: string, name: string): Json => ({
    [`${option}_address`]: addressOf(name),
    [`${option}_tls`]: tls(name),
    [`${option}_tcp_keepalive`]: keepalive(name),
  });
  return {
    zipkin: addressOf('zipkin'),
    lightstep: addressOf('lightstep'),
    datadog: addressOf('datadog_agent'),
    tracing_tls: tls('zipkin') ?? tls('lightstep') ?? tls('datadog_agent'),
    statsd: isObject(statsd) ? json(statsd.socket_address) : undefined,
    ...service('envoy_metrics_service', 'envoy_metrics_service'),
    ...service('envoy_accesslog_service', 'envoy_accesslog_service'),
  };
}

/** Values of Istio's agent that chartpilot lacks; templates skip the parts that need them. */
const unsupportedValues: Json = Object.fromEntries(
  [
    ...['sts', 'gcp_project_id', 'gcp_project_number', 'stackdriver', 'stackdriverProjectID', 'stackdriverDebug'],
    ...['stackdriverMaxAnnotations', 'stackdriverMaxAttributes', 'stackdriverMaxEvents', 'openCensusAgent'],
    ...['openCensusAgentContexts', 'lightstepToken', 'xds_root_cert', 'metadata_discovery', 'log_json'],
    ...['custom_file_path', 'load_stats_config_json_str'],
    ...['metrics_localhost_access_only', 'delimited_stats_tags_enabled', 'deferred_cluster_creation'],
    ...['secure_metrics_port', 'secure_merged_metrics_port', 'enable_self_discovery'],
    ...['deferred_stats_creation', 'bypass_overload_manager', 'envoy_status_port_enable_proxy_protocol'],
  ].map((name) => [name, undefined]),
);
