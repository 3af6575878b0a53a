/** What a template of a bootstrap may ask for, by the names of Istio's own template (spec/agent.md §4.2). Pure. */
import { proxyConfigToJson } from '../../../model/mesh/proxy-config.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { OptionErrors } from '../../../runtime/option-errors.ts';
import { type BootstrapFacts, lookupFamily } from '../bootstrap.ts';
import { statsChoices } from '../bootstrap-stats.ts';

type Json = Record<string, unknown>;

/** What of the built-in bootstrap is looked into. */
interface BuiltIn {
  readonly layered_runtime?: { readonly layers: readonly { readonly static_layer?: Json }[] };
  readonly static_resources?: { readonly clusters: readonly Cluster[] };
  readonly stats_sinks?: readonly { readonly name: string; readonly typed_config: Json }[];
  readonly stats_flush_interval?: string;
  readonly stats_eviction_interval?: string;
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

/** Values by the names that templates of Istio's bootstrap use; `bootstrap` is what would be written without a template, and most others are parts of it. */
export function templateValues(facts: BootstrapFacts, builtIn: object): Record<string, unknown> {
  return {
    bootstrap: builtIn,
    ...ofProxy(facts),
    ...ofStats(facts),
    ...ofBuiltIn(builtIn),
    ...ofTelemetry(builtIn),
    ...off,
  };
}

/** Of the node and its configuration. */
function ofProxy(facts: BootstrapFacts): Json {
  const { node, config, local, dualStack } = facts;
  const { locality = {} } = node;
  const other = local.localhost === '::1' ? ['127.0.0.1', '0.0.0.0'] : ['::1', '::'];
  return {
    nodeID: node.id,
    nodeType: node.id.split('~', 1)[0],
    cluster: node.cluster,
    region: locality.region ?? '',
    zone: locality.zone ?? '',
    sub_zone: locality.sub_zone ?? '',
    meta_json_str: JSON.stringify(node.metadata),
    metadata: node.metadata,
    config: withGoNames(proxyConfigToJson(config)),
    pilot_SAN: node.metadata.PILOT_SAN,
    discovery_address: config.discoveryAddress,
    pilot_grpc_address: config.discoveryAddress,
    connect_timeout: `${facts.connectTimeoutMs / 1000}s`,
    localhost: local.localhost,
    wildcard: local.wildcard,
    dual_stack: dualStack,
    additional_localhost: dualStack ? other[0] : '',
    additional_wildcard: dualStack ? other[1] : '',
    dns_lookup_family: lookupFamily(facts),
    envoy_status_port: facts.envoyStatusPort,
    envoy_prometheus_port: facts.envoyPrometheusPort,
    sts_port: node.metadata.STS_PORT,
    outlier_log_path: facts.outlierLogPath,
    xds_socket: facts.xdsSocket,
    sds_socket: facts.secretSocket,
    workload_identity_socket_file: facts.secretSocket.split('/').at(-1),
    xds_type: facts.delta ? 'DELTA_GRPC' : 'GRPC',
    env: { HOST_IP: facts.hostIp },
  };
}

/** Fields of a message in Go begin with a capital; people write them with a small letter. */
function withGoNames(config: Json): Json {
  return Object.fromEntries(
    Object.entries(config).flatMap(([field, value]) => [
      [field, value],
      [field.charAt(0).toUpperCase() + field.slice(1), value],
    ]),
  );
}

/** What is the same in every bootstrap stands in the template itself. */
function ofStats(facts: BootstrapFacts): Json {
  // The built-in bootstrap is made of the same facts, and has told of their mistakes.
  const { extraTags, inclusion } = statsChoices(facts, new OptionErrors());
  return {
    extraStatTags: extraTags,
    inclusionPrefix: inclusion.inclusionPrefixes,
    inclusionSuffix: inclusion.inclusionSuffixes,
    inclusionRegexps: inclusion.inclusionRegexps,
  };
}

function ofBuiltIn({ layered_runtime, ...rest }: BuiltIn): Json {
  return {
    runtime_flags: JSON.stringify(layered_runtime?.layers[0]?.static_layer ?? {}),
    stats_flush_interval: rest.stats_flush_interval,
    stats_eviction_interval: rest.stats_eviction_interval,
  };
}

/** Addresses and TLS settings as JSON, absent where nothing is reported there. */
function ofTelemetry({ static_resources, stats_sinks = [] }: BuiltIn): Json {
  const clusters = new Map((static_resources?.clusters ?? []).map((cluster) => [cluster.name, cluster]));
  const json = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));
  const at = (name: string): string | undefined =>
    json(clusters.get(name)?.load_assignment.endpoints[0]?.lb_endpoints[0]?.endpoint.address.socket_address);
  const tls = (name: string): string | undefined => json(clusters.get(name)?.transport_socket);
  const keepalive = (name: string): string | undefined => json(clusters.get(name)?.upstream_connection_options);
  const statsd = stats_sinks.find(({ name }) => name === 'envoy.stat_sinks.statsd')?.typed_config.address;
  const service = (option: string, name: string): Json => ({
    [`${option}_address`]: at(name),
    [`${option}_tls`]: tls(name),
    [`${option}_tcp_keepalive`]: keepalive(name),
  });
  return {
    zipkin: at('zipkin'),
    lightstep: at('lightstep'),
    datadog: at('datadog_agent'),
    tracing_tls: tls('zipkin') ?? tls('lightstep') ?? tls('datadog_agent'),
    statsd: isObject(statsd) ? json(statsd.socket_address) : undefined,
    ...service('envoy_metrics_service', 'envoy_metrics_service'),
    ...service('envoy_accesslog_service', 'envoy_accesslog_service'),
  };
}

/** What Istio's agent has beside, and this one has not: a template's part of it is left out. */
const off: Json = Object.fromEntries(
  [
    ...['sts', 'gcp_project_id', 'gcp_project_number', 'stackdriver', 'openCensusAgent', 'lightstepToken'],
    ...['metadata_discovery', 'log_json', 'custom_file_path', 'load_stats_config_json_str', 'histogram_buckets'],
    ...['stats_compression', 'metrics_localhost_access_only', 'discovery_host'],
  ].map((name) => [name, undefined]),
);
