/**
 * Services that Envoy reports to from its start on, as the proxy's configuration names them: access logs, metrics, spans
 * (spec/agent.md §5.2, §5.4). What comes over xDS refers to the clusters by their names. Pure.
 */
import { isIP } from 'node:net';
import { isObject } from '../../model/fields/decode.ts';
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { loadAssignment } from './bootstrap-address.ts';

type Json = Record<string, unknown>;

export interface TelemetryFacts {
  readonly config: Pick<ProxyConfig, 'tracing' | 'zipkinAddress' | 'envoyAccessLogService' | 'envoyMetricsService'> &
    Pick<ProxyConfig, 'envoyMetricsServiceAddress'>;
  /** What spans call the service. */
  readonly serviceName: string;
  readonly dnsLookupFamily: string;
  /** What `$(HOST_IP)` in an address stands for; empty: nobody said. */
  readonly hostIp: string;
}

export interface TelemetryServices {
  readonly clusters: readonly Json[];
  /** Absent: no spans are reported. */
  readonly tracing?: Json;
  readonly statsSinks: readonly Json[];
}

/** @throws ChartpilotError CONFIG_INVALID for what cannot be reported to */
export function telemetryServices(facts: TelemetryFacts): TelemetryServices {
  const { config } = facts;
  const { envoyMetricsServiceAddress: oldAddress } = config;
  const accessLog = serviceOf('envoyAccessLogService', config.envoyAccessLogService);
  const metrics = serviceOf(
    'envoyMetricsService',
    config.envoyMetricsService ?? (oldAddress && { address: oldAddress }),
  );
  const tracer = tracerOf(facts);
  return {
    clusters: [
      ...(tracer ? [cluster(tracer.service, tracer.cluster, false, facts)] : []),
      ...(metrics ? [cluster(metrics, 'envoy_metrics_service', true, facts)] : []),
      ...(accessLog ? [cluster(accessLog, 'envoy_accesslog_service', true, facts)] : []),
    ],
    ...(tracer && { tracing: { http: { name: tracer.name, typed_config: tracer.settings } } }),
    statsSinks: metrics ? [metricsSink] : [],
  };
}

const metricsSink: Json = {
  name: 'envoy.stat_sinks.metrics_service',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig',
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'envoy_metrics_service' } },
  },
};

interface RemoteService {
  /** Its option, for messages. */
  readonly option: string;
  readonly address: string;
  readonly tls: Json | undefined;
  readonly keepalive: Json | undefined;
}

/** Undefined when no address is given. */
function serviceOf(option: string, settings: unknown): RemoteService | undefined {
  if (!isObject(settings) || typeof settings.address !== 'string' || settings.address === '') return undefined;
  const { address, tlsSettings, tcpKeepalive } = settings;
  return {
    option,
    address,
    tls: isObject(tlsSettings) && tlsSettings.mode !== 'DISABLE' ? tlsSettings : undefined,
    keepalive: isObject(tcpKeepalive) ? tcpKeepalive : undefined,
  };
}

/** Tracers that Envoy 1.40 has; it refuses a bootstrap with one of the others that the API knows. */
const tracers = {
  zipkin: {
    name: 'envoy.tracers.zipkin',
    cluster: 'zipkin',
    settings: () => ({
      '@type': 'type.googleapis.com/envoy.config.trace.v3.ZipkinConfig',
      collector_cluster: 'zipkin',
      collector_endpoint: '/api/v2/spans',
      collector_endpoint_version: 'HTTP_JSON',
      trace_id_128bit: true,
      shared_span_context: false,
    }),
  },
  datadog: {
    name: 'envoy.tracers.datadog',
    cluster: 'datadog_agent',
    settings: (serviceName: string) => ({
      '@type': 'type.googleapis.com/envoy.config.trace.v3.DatadogConfig',
      collector_cluster: 'datadog_agent',
      service_name: serviceName,
    }),
  },
} as const;

/** What of the configuration has no effect, as sentences for people. */
export function telemetryWarnings({ tracing = {} }: Pick<ProxyConfig, 'tracing'>): readonly string[] {
  return ['lightstep', 'openCensusAgent', 'stackdriver']
    .filter((tracer) => tracing[tracer] !== undefined)
    .map((tracer) => `tracing.${tracer}: Envoy has no such tracer any more, so no spans are reported`);
}

function tracerOf({ config, serviceName }: TelemetryFacts) {
  const { zipkinAddress } = config;
  const tracing: Json = config.tracing ?? (zipkinAddress ? { zipkin: { address: zipkinAddress } } : {});
  for (const [key, { name, cluster: clusterName, settings }] of Object.entries(tracers)) {
    const option = `tracing.${key}`;
    const given = tracing[key];
    const service = serviceOf(option, isObject(given) ? { tlsSettings: tracing.tlsSettings, ...given } : given);
    if (service !== undefined) return { name, cluster: clusterName, service, settings: settings(serviceName) };
  }
  return undefined;
}

function cluster(service: RemoteService, name: string, http2: boolean, facts: TelemetryFacts): Json {
  const { host, port } = hostAndPort(service, facts.hostIp);
  const socket = service.tls && tlsTransport(service, service.tls, name, http2);
  return {
    name,
    type: isIP(host) === 0 ? 'STRICT_DNS' : 'STATIC',
    ...(isIP(host) === 0 && {
      dns_lookup_family: facts.dnsLookupFamily,
      respect_dns_ttl: true,
      dns_refresh_rate: '30s',
    }),
    connect_timeout: '1s',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: loadAssignment(name, host, port),
    ...(http2 && {
      typed_extension_protocol_options: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    }),
    ...(service.keepalive && { upstream_connection_options: { tcp_keepalive: keepalive(service.keepalive) } }),
    ...(socket && { transport_socket: socket }),
  };
}

function hostAndPort({ option, address }: RemoteService, hostIp: string): { host: string; port: number } {
  if (address.includes('$(HOST_IP)') && hostIp === '') {
    throw new ChartpilotError('CONFIG_INVALID', `${option}.address ${address}: the variable HOST_IP is not set`);
  }
  const parsed = parseHostAndPort(address.replaceAll('$(HOST_IP)', isIP(hostIp) === 6 ? `[${hostIp}]` : hostIp));
  if (parsed === undefined)
    throw new ChartpilotError('CONFIG_INVALID', `${option}.address ${address} is not host:port`);
  return parsed;
}

/** Seconds that are whole numbers above 0; others are Envoy's own. */
function keepalive({ probes, time, interval }: Json): Json {
  const seconds = (value: unknown): number =>
    typeof value === 'string' ? Number.parseInt(value, 10) : typeof value === 'number' ? value : 0;
  return {
    ...(seconds(probes) > 0 && { keepalive_probes: seconds(probes) }),
    ...(seconds(time) > 0 && { keepalive_time: seconds(time) }),
    ...(seconds(interval) > 0 && { keepalive_interval: seconds(interval) }),
  };
}

/** By files, which Envoy reads at its start: there is no agent's secret server to ask yet. */
function tlsTransport({ option }: RemoteService, tls: Json, name: string, http2: boolean): Json {
  const text = (field: string): string | undefined => {
    const value = tls[field];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const file = (field: string): Json => {
    const filename = text(field);
    if (filename === undefined) {
      throw new ChartpilotError('CONFIG_INVALID', `${option}.tlsSettings: mode ${tls.mode} needs ${field}`);
    }
    return { filename };
  };
  if (tls.mode !== 'SIMPLE' && tls.mode !== 'MUTUAL') {
    throw new ChartpilotError(
      'CONFIG_INVALID',
      `${option}.tlsSettings.mode ${tls.mode}: DISABLE, SIMPLE or MUTUAL with files is what the proxy can do`,
    );
  }
  const names = Array.isArray(tls.subjectAltNames) ? (tls.subjectAltNames as string[]) : [];
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: text('sni') ?? name,
      common_tls_context: {
        ...(http2 && { alpn_protocols: ['h2'] }),
        ...(tls.mode === 'MUTUAL' && {
          tls_certificates: [{ certificate_chain: file('clientCertificate'), private_key: file('privateKey') }],
        }),
        validation_context: {
          trusted_ca: file('caCertificates'),
          ...(names.length > 0 && {
            match_typed_subject_alt_names: names.map((exact) => ({
              san_type: exact.includes('://') ? 'URI' : isIP(exact) === 0 ? 'DNS' : 'IP_ADDRESS',
              matcher: { exact },
            })),
          }),
        },
      },
    },
  };
}
