/** Envoy's bootstrap, from what the agent knows (spec/agent.md §5.2), as v3 API JSON. Pure. */
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import type { LocalAddresses } from '../options/addresses.ts';
import { loadAssignment, socketAddress } from './bootstrap-address.ts';
import { statsConfig } from './bootstrap-stats.ts';
import { telemetryServices } from './bootstrap-telemetry.ts';
import type { EnvoyNode } from './node-metadata.ts';

export interface BootstrapFacts {
  readonly node: EnvoyNode;
  readonly config: ProxyConfig;
  readonly addresses: readonly string[];
  readonly local: LocalAddresses;
  readonly annotations: Readonly<Record<string, string>>;
  /** Incremental xDS. */
  readonly delta: boolean;
  readonly connectTimeoutMs: number;
  /** At which Envoy asks for its certificates; absent: it has none. */
  readonly secretSocket?: string;
  /** The agent's xDS proxy: the path of its socket, as Envoy finds it. */
  readonly xdsSocket: string;
  /** Headers of Envoy's xDS streams. */
  readonly xdsHeaders: Readonly<Record<string, string>>;
  /** Envoy's own listeners; 0: none. */
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly outlierLogPath?: string;
  /** Of the machine that the pod runs on (HOST_IP); empty: nobody said. */
  readonly hostIp: string;
}

type Json = Record<string, unknown>;

const v3 = 'V3';
const controlPlaneCluster = 'xds-grpc';
const adminCluster = 'prometheus_stats';
const agentCluster = 'agent';
/** What listeners and clusters of the control plane name (src/networking/messages/config-source.ts). */
const secretCluster = 'sds-grpc';
const noLimit = 2_147_483_647;

/** @throws ChartpilotError CONFIG_INVALID when a service that Envoy is to report to cannot be reported to */
export function buildBootstrap(facts: BootstrapFacts): Json {
  const { config, local, outlierLogPath, node, hostIp } = facts;
  const telemetry = telemetryServices({
    config,
    serviceName: node.cluster,
    dnsLookupFamily: lookupFamily(facts),
    hostIp,
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
    overload_manager: {
      resource_monitors: [
        {
          name: 'envoy.resource_monitors.global_downstream_max_connections',
          typed_config: {
            '@type':
              'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
            max_active_downstream_connections: noLimit,
          },
        },
      ],
    },
    stats_config: statsConfig(facts),
    admin: {
      address: socketAddress(local.localhost, config.proxyAdminPort),
      access_log: [
        {
          name: 'envoy.access_loggers.file',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
            path: '/dev/null',
          },
        },
      ],
    },
    ...(outlierLogPath !== undefined && {
      cluster_manager: { outlier_detection: { event_log_path: outlierLogPath } },
    }),
    dynamic_resources: dynamicResources(facts),
    static_resources: { clusters: [...clusters(facts), ...telemetry.clusters], listeners: listeners(facts) },
    ...(telemetry.tracing && { tracing: telemetry.tracing }),
    ...(sinks.length > 0 && { stats_sinks: sinks }),
  };
}

/** The mesh may add flags; an empty value takes one away. */
function runtimeFlags(config: ProxyConfig): Json {
  const flags: Record<string, string> = { 're2.max_program_size.error_level': '32768', ...config.runtimeValues };
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== ''));
}

function dynamicResources({ delta, xdsHeaders }: BootstrapFacts): Json {
  // Without a limit on the first answer: an Envoy that gives up would be live without any listener.
  const fromStream = { ads: {}, initial_fetch_timeout: '0s', resource_api_version: v3 };
  return {
    lds_config: fromStream,
    cds_config: fromStream,
    ads_config: {
      api_type: delta ? 'DELTA_GRPC' : 'GRPC',
      set_node_on_first_message_only: true,
      transport_api_version: v3,
      grpc_services: [
        {
          envoy_grpc: {
            cluster_name: controlPlaneCluster,
            // The agent is always there, and holds a stream until it has a control plane for it: it is what spreads the
            // connections of many proxies over time, and pauses after failures.
            retry_policy: { retry_back_off: { base_interval: '0.1s', max_interval: '1s' } },
          },
          initial_metadata: Object.entries(xdsHeaders).map(([key, value]) => ({ key, value })),
        },
      ],
    },
  };
}

function clusters(facts: BootstrapFacts): Json[] {
  const { config, local, envoyPrometheusPort, secretSocket } = facts;
  return [
    controlPlane(facts),
    ...(secretSocket === undefined ? [] : [secretServer(secretSocket)]),
    ...(envoyPrometheusPort === 0 ? [] : [localCluster(adminCluster, local.localhost, config.proxyAdminPort)]),
    ...(hasStatusListener(facts) ? [localCluster(agentCluster, local.localhost, config.statusPort)] : []),
  ];
}

function lookupFamily({ local }: BootstrapFacts): string {
  return local.ipVersion === 'v6' ? 'AUTO' : 'V4_ONLY';
}

/** The agent's socket: it has the connection to the control plane. */
function controlPlane({ connectTimeoutMs, xdsSocket }: BootstrapFacts): Json {
  const limits = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };
  return {
    name: controlPlaneCluster,
    type: 'STATIC',
    connect_timeout: seconds(connectTimeoutMs),
    lb_policy: 'ROUND_ROBIN',
    load_assignment: {
      cluster_name: controlPlaneCluster,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: xdsSocket } } } }] }],
    },
    circuit_breakers: {
      thresholds: [
        { priority: 'DEFAULT', ...limits },
        { priority: 'HIGH', ...limits },
      ],
    },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        common_http_protocol_options: { max_requests_per_connection: 1 },
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
}

function secretServer(socket: string): Json {
  return {
    name: secretCluster,
    type: 'STATIC',
    connect_timeout: '1s',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: {
      cluster_name: secretCluster,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: socket } } } }] }],
    },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
}

function localCluster(name: string, host: string, port: number): Json {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '0.250s',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: loadAssignment(name, host, port),
  };
}

function listeners(facts: BootstrapFacts): Json[] {
  const { local, envoyPrometheusPort, envoyStatusPort } = facts;
  return [
    ...(envoyPrometheusPort === 0
      ? []
      : [forwardingListener(local.wildcard, envoyPrometheusPort, 'stats', '/stats/prometheus', adminCluster)]),
    ...(hasStatusListener(facts)
      ? [forwardingListener(local.wildcard, envoyStatusPort, 'agent', '/healthz/ready', agentCluster)]
      : []),
  ];
}

/** Readiness through Envoy also proves that Envoy forwards; without a status server there is nothing to ask. */
function hasStatusListener({ config, envoyStatusPort }: BootstrapFacts): boolean {
  return envoyStatusPort !== 0 && config.statusPort !== 0;
}

function forwardingListener(host: string, port: number, statPrefix: string, prefix: string, cluster: string): Json {
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    codec_type: 'AUTO',
    stat_prefix: statPrefix,
    route_config: {
      virtual_hosts: [{ name: 'backend', domains: ['*'], routes: [{ match: { prefix }, route: { cluster } }] }],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  return {
    name: `${statPrefix}_${port}`,
    address: socketAddress(host, port),
    // Probes and scrapes must get through whatever the traffic does.
    ignore_global_conn_limit: true,
    filter_chains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] }],
  };
}

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
