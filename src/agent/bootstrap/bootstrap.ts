import { disallowedValue } from '../../model/fields/violation.ts';
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { accessLogCluster } from '../../model/standard-metrics/stream-rules.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import type { LocalAddresses } from '../options/addresses.ts';
import {
  http2Options,
  http2OptionsWith,
  loadAssignment,
  optionalSecret,
  socketAddress,
  statName,
} from './bootstrap-parts.ts';
import { statsConfig, statsIntervals } from './bootstrap-stats.ts';
import { telemetryServices } from './bootstrap-telemetry.ts';
import type { EnvoyNode } from './node-metadata.ts';
import { statsCompressor } from './stats-compressor.ts';

export interface BootstrapFacts {
  readonly node: EnvoyNode;
  readonly config: ProxyConfig;
  readonly addresses: readonly string[];
  readonly local: LocalAddresses;
  readonly annotations: Readonly<Record<string, string>>;
  readonly delta: boolean;
  readonly connectTimeoutMs: number;
  /** The socket may belong to the agent or to another server. */
  readonly secretSocket: string;
  readonly hasSecrets: boolean;
  readonly dualStack: boolean;
  readonly xdsSocket: string;
  readonly accessLogSocket?: string;
  readonly xdsHeaders: Readonly<Record<string, string>>;
  /** Ports of Envoy's own listeners; 0 if disabled. */
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  /** Ports of separate listeners for metrics with mutual TLS; 0 if disabled. */
  readonly envoySecureMetricsPort: number;
  readonly envoySecureMergedMetricsPort: number;
  readonly outlierLogPath?: string;
  /** Address of the pod's node (HOST_IP); empty if unknown. */
  readonly hostIp: string;
  readonly exitOnZeroActiveConnections: boolean;
}

export interface BootstrapFindings {
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
}

type Json = Record<string, unknown>;

const v3 = 'V3';
const controlPlaneCluster = 'xds-grpc';
const adminCluster = 'prometheus_stats';
const agentCluster = 'agent';
/** Resources of the control plane refer to this name (src/networking/messages/config-source-message.ts). */
const secretCluster = 'sds-grpc';
const unlimitedConnections = 2_147_483_647;

/** Reports invalid settings to `errors`; the result is then unusable. */
export function buildBootstrap(facts: BootstrapFacts, { errors, warnings }: BootstrapFindings): Json {
  const { config, local, outlierLogPath, node } = facts;
  checkSecureListeners(facts, errors);
  const telemetry = telemetryServices({
    ...facts,
    serviceName: node.cluster,
    dnsLookupFamily: lookupFamily(facts),
    errors,
  });
  const sinks = [...telemetry.statsSinks, ...(config.statsdUdpAddress ? [statsdSink(config.statsdUdpAddress)] : [])];
  return {
    node: { ...facts.node },
    layered_runtime: {
      layers: [
        { name: 'global config', static_layer: runtimeFlags(config) },
        { name: 'admin', admin_layer: {} },
      ],
    },
    bootstrap_extensions: [internalListener],
    overload_manager: overloadManager(facts),
    ...statsIntervals(facts.annotations, { warnings }),
    stats_config: statsConfig(facts, { errors, warnings }),
    admin: {
      access_log: [
        {
          name: 'envoy.access_loggers.file',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
            path: '/dev/null',
          },
        },
      ],
      profile_path: '/var/lib/istio/data/envoy.prof',
      address: socketAddress(local.localhost, config.proxyAdminPort),
    },
    dynamic_resources: dynamicResources(facts),
    static_resources: {
      clusters: [...clusters(facts), ...telemetry.clusters],
      listeners: listeners(facts, statsCompressor(facts.annotations, { warnings })),
    },
    ...(telemetry.tracing && { tracing: telemetry.tracing }),
    ...(sinks.length > 0 && { stats_sinks: sinks }),
    ...(outlierLogPath !== undefined && {
      cluster_manager: { outlier_detection: { event_log_path: outlierLogPath } },
    }),
  };
}

/** A TypedStruct, so that an Envoy without this extension type can still parse the file. */
const internalListener: Json = {
  name: 'envoy.bootstrap.internal_listener',
  typed_config: {
    '@type': 'type.googleapis.com/udpa.type.v1.TypedStruct',
    type_url: 'type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener',
    value: { buffer_size_kb: 64 },
  },
};

const connectionLimitFlag = 'overload.global_downstream_max_connections';

/**
 * Istio's flags that exist in Envoy 1.40. With the removed flag `envoy.reloadable_features.no_extension_lookup_by_name`, Envoy prints a stack trace
 * at each start.
 */
const defaultRuntimeFlags: Readonly<Record<string, string>> = {
  'envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst': 'true',
  'envoy.reloadable_features.http_reject_path_with_fragment': 'false',
  'envoy.reloadable_features.fixed_heap_use_allocated': 'true',
  // Istio disables this because of Envoy's issue 45212.
  'envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update': 'false',
  're2.max_program_size.error_level': '32768',
};

/** The mesh configuration adds flags; an empty value removes one. Envoy requires JSON booleans, but accepts numbers as strings. */
function runtimeFlags(config: ProxyConfig): Json {
  const flags = Object.entries({ ...defaultRuntimeFlags, ...config.runtimeValues });
  return Object.fromEntries(
    flags.filter(([, value]) => value !== '').map(([flag, value]) => [flag, booleanByText.get(value) ?? value]),
  );
}

const booleanByText = new Map([
  ['true', true],
  ['false', false],
]);

function overloadManager({ config, node }: BootstrapFacts): Json {
  return {
    resource_monitors: [
      {
        name: 'envoy.resource_monitors.global_downstream_max_connections',
        typed_config: {
          '@type':
            'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
          max_active_downstream_connections: connectionLimit(config, node),
        },
      },
    ],
  };
}

function connectionLimit({ connectionSettings, runtimeValues }: ProxyConfig, { metadata }: EnvoyNode): number {
  const candidates = [
    connectionSettings?.globalDownstreamConnectionLimit,
    metadata.GLOBAL_DOWNSTREAM_MAX_CONNECTIONS,
    runtimeValues[connectionLimitFlag],
  ];
  return (
    candidates.map(Number).find((limit) => Number.isInteger(limit) && limit > 0 && limit <= unlimitedConnections) ??
    unlimitedConnections
  );
}

function dynamicResources({ delta, xdsHeaders }: BootstrapFacts): Json {
  // Wait for the first response without limit; after a timeout, Envoy would be live without listeners.
  const adsSource = { ads: {}, initial_fetch_timeout: '0s', resource_api_version: v3 };
  return {
    lds_config: adsSource,
    cds_config: adsSource,
    ads_config: {
      api_type: delta ? 'DELTA_GRPC' : 'GRPC',
      set_node_on_first_message_only: true,
      transport_api_version: v3,
      grpc_services: [
        {
          envoy_grpc: {
            cluster_name: controlPlaneCluster,
            // The agent is always reachable and keeps a stream until the control plane is connected.
            retry_policy: { retry_back_off: { base_interval: '0.1s', max_interval: '1s' } },
          },
          initial_metadata: Object.entries(xdsHeaders).map(([key, value]) => ({ key, value })),
        },
      ],
    },
  };
}

function clusters(facts: BootstrapFacts): Json[] {
  const { config, local, secretSocket } = facts;
  return [
    ...(!forwardsToAdmin(facts) ? [] : [localCluster(adminCluster, local.localhost, config.proxyAdminPort)]),
    ...(forwardsToAgent(facts) ? [localCluster(agentCluster, local.localhost, config.statusPort)] : []),
    secretServer(secretSocket),
    ...(facts.accessLogSocket === undefined ? [] : [accessLogServer(facts.accessLogSocket)]),
    controlPlane(facts),
  ];
}

export function lookupFamily({ local, dualStack }: Pick<BootstrapFacts, 'local' | 'dualStack'>): string {
  if (dualStack) return 'ALL';
  return local.ipVersion === 'v6' ? 'AUTO' : 'V4_ONLY';
}

/** Each stream has its own connection. */
function controlPlane({ connectTimeoutMs, xdsSocket }: BootstrapFacts): Json {
  const limits = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };
  return {
    ...socketCluster(controlPlaneCluster, xdsSocket, seconds(connectTimeoutMs)),
    circuit_breakers: {
      thresholds: [
        { priority: 'DEFAULT', ...limits },
        { priority: 'HIGH', ...limits },
      ],
    },
    upstream_connection_options: { tcp_keepalive: { keepalive_time: 300 } },
    max_requests_per_connection: 1,
  };
}

function secretServer(socket: string): Json {
  return socketCluster(secretCluster, socket, '1s');
}

/**
 * Envoy buffers this much per stream while the agent does not read, and then drops entries. Without a limit it buffers many megabytes (measured with
 * 1.40).
 */
const accessLogBufferBytes = 1024 * 1024;

function accessLogServer(socket: string): Json {
  return {
    ...socketCluster(accessLogCluster, socket, '1s'),
    typed_extension_protocol_options: http2OptionsWith({
      initial_stream_window_size: accessLogBufferBytes,
      initial_connection_window_size: accessLogBufferBytes,
    }),
  };
}

function socketCluster(name: string, path: string, connectTimeout: string): Json {
  return {
    name,
    alt_stat_name: statName(name),
    type: 'STATIC',
    typed_extension_protocol_options: http2Options,
    connect_timeout: connectTimeout,
    lb_policy: 'ROUND_ROBIN',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path } } } }] }],
    },
  };
}

function localCluster(name: string, host: string, port: number): Json {
  return {
    name,
    alt_stat_name: statName(name),
    type: 'STATIC',
    connect_timeout: '0.250s',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: loadAssignment(name, host, port),
  };
}

function listeners(facts: BootstrapFacts, compressor: Json | undefined): Json[] {
  const { envoyPrometheusPort, envoyStatusPort, envoySecureMetricsPort, envoySecureMergedMetricsPort } = facts;
  const metrics = { prefix: '/stats/prometheus' };
  const forwarded: (ForwardingRule | false)[] = [
    { ...metrics, port: envoyPrometheusPort, statPrefix: 'stats', cluster: adminCluster, compressor },
    hasStatusListener(facts) && {
      prefix: '/healthz/ready',
      port: envoyStatusPort,
      statPrefix: 'agent',
      cluster: agentCluster,
    },
    { ...metrics, port: envoySecureMetricsPort, statPrefix: 'stats', cluster: adminCluster, secure: true },
    { ...metrics, port: envoySecureMergedMetricsPort, statPrefix: 'agent', cluster: agentCluster, secure: true },
  ];
  return forwarded.flatMap((target) =>
    target === false || target.port === 0 ? [] : [forwardingListener(facts, target)],
  );
}

/** Envoy would wait for a missing certificate without limit, and the merged metrics require the status port. */
function checkSecureListeners(
  { envoySecureMetricsPort, envoySecureMergedMetricsPort, hasSecrets, config }: BootstrapFacts,
  errors: OptionErrors,
): void {
  for (const [name, port] of [
    ['ENVOY_SECURE_METRICS_PORT', envoySecureMetricsPort],
    ['ENVOY_SECURE_MERGED_METRICS_PORT', envoySecureMergedMetricsPort],
  ] as const) {
    if (port !== 0 && !hasSecrets)
      errors.addFlagError(name, disallowedValue('requires a workload certificate, which this agent does not obtain'));
  }
  if (envoySecureMergedMetricsPort !== 0 && config.statusPort === 0) {
    errors.addFlagError(
      'ENVOY_SECURE_MERGED_METRICS_PORT',
      disallowedValue('requires the status port of the agent (--statusPort)'),
    );
  }
}

function forwardsToAdmin({ envoyPrometheusPort, envoySecureMetricsPort }: BootstrapFacts): boolean {
  return envoyPrometheusPort !== 0 || envoySecureMetricsPort !== 0;
}

function forwardsToAgent(facts: BootstrapFacts): boolean {
  return hasStatusListener(facts) || (facts.envoySecureMergedMetricsPort !== 0 && facts.config.statusPort !== 0);
}

interface ForwardingRule {
  readonly port: number;
  readonly statPrefix: string;
  readonly prefix: string;
  readonly cluster: string;
  readonly secure?: boolean;
  readonly compressor?: Json | undefined;
}

/** The readiness listener forwards to the agent's status server, so that readiness also proves that Envoy forwards requests. */
function hasStatusListener({ config, envoyStatusPort }: BootstrapFacts): boolean {
  return envoyStatusPort !== 0 && config.statusPort !== 0;
}

function forwardingListener(
  { local, dualStack }: BootstrapFacts,
  { port, statPrefix, prefix, cluster, secure, compressor }: ForwardingRule,
): Json {
  const otherFamily = local.wildcard === '::' ? '0.0.0.0' : '::';
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    codec_type: 'AUTO',
    stat_prefix: statPrefix,
    route_config: {
      virtual_hosts: [{ name: 'backend', domains: ['*'], routes: [{ match: { prefix }, route: { cluster } }] }],
    },
    http_filters: [
      ...(compressor === undefined ? [] : [compressor]),
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  return {
    name: `${statPrefix}_${port}`,
    address: socketAddress(local.wildcard, port),
    ...(dualStack && { additional_addresses: [{ address: socketAddress(otherFamily, port) }] }),
    // Probes and scrapes must succeed under any load.
    ignore_global_conn_limit: true,
    bypass_overload_manager: true,
    filter_chains: [
      {
        filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
        ...(secure === true && { transport_socket: meshTls }),
      },
    ],
  };
}

/** Until Envoy has the certificates, it serves without metrics. */
const meshTls: Json = {
  name: 'envoy.transport_sockets.tls',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    common_tls_context: {
      tls_params: { tls_minimum_protocol_version: 'TLSv1_2' },
      alpn_protocols: ['h2', 'http/1.1'],
      tls_certificate_sds_secret_configs: [optionalSecret('default')],
      combined_validation_context: {
        default_validation_context: {},
        validation_context_sds_secret_config: optionalSecret('ROOTCA'),
      },
    },
    require_client_certificate: true,
  },
};

function statsdSink(address: string): Json {
  const { host, port } = parseHostAndPort(address)!;
  return {
    name: 'envoy.stat_sinks.statsd',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink',
      address: socketAddress(host, port),
    },
  };
}

function seconds(ms: number): string {
  return `${ms / 1000}s`;
}
