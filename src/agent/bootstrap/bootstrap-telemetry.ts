/**
 * Services of the proxy configuration to which Envoy reports access logs, metrics and spans. xDS resources refer to their
 * clusters by name.
 */
import { isIP } from 'node:net';
import { durationMsOf } from '../../model/fields/duration.ts';
import {
  disallowedValue,
  missingValue as missingField,
  mustBe,
  mustBeHidden,
  tooLarge,
  unknownReference,
} from '../../model/fields/violation.ts';
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import { withHostIp } from '../options/host-ip.ts';
import { http2Options, loadAssignment, optionalSecret, requiredSecret, statName } from './bootstrap-parts.ts';
import type { EnvoyNode } from './node-metadata.ts';

type Json = Record<string, unknown>;

export interface TelemetryFacts {
  readonly config: Pick<ProxyConfig, 'tracing' | 'zipkinAddress' | 'envoyAccessLogService' | 'envoyMetricsService'> &
    Pick<ProxyConfig, 'envoyMetricsServiceAddress'>;
  readonly node: Pick<EnvoyNode, 'metadata'>;
  readonly serviceName: string;
  readonly dnsLookupFamily: string;
  /** Replaces `$(HOST_IP)` in addresses; empty if unknown. */
  readonly hostIp: string;
  readonly hasSecrets: boolean;
  readonly errors: OptionErrors;
}

export interface TelemetryServices {
  readonly clusters: readonly Json[];
  readonly tracing?: Json;
  readonly statsSinks: readonly Json[];
}

export function telemetryServices(facts: TelemetryFacts): TelemetryServices {
  const { config } = facts;
  const { envoyMetricsServiceAddress: metricsServiceAddress } = config;
  const accessLog = serviceOf('envoyAccessLogService', config.envoyAccessLogService);
  const metrics = serviceOf(
    'envoyMetricsService',
    config.envoyMetricsService ?? (metricsServiceAddress && { address: metricsServiceAddress }),
  );
  const tracer = tracerOf(facts);
  return {
    clusters: [
      ...(tracer ? cluster(tracer.service, tracer, facts) : []),
      ...(metrics ? cluster(metrics, { cluster: 'envoy_metrics_service', http2: true }, facts) : []),
      ...(accessLog ? cluster(accessLog, { cluster: 'envoy_accesslog_service', http2: true }, facts) : []),
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
  readonly option: string;
  readonly address: string;
  readonly tls: Json | undefined;
  readonly keepalive: Json | undefined;
}

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

interface Tracer {
  readonly name: string;
  readonly cluster: string;
  /** SNI for the collector if none is configured. */
  readonly tlsName: string;
  readonly http2: boolean;
  settings(serviceName: string, configured: Json): Json;
}

/** Tracers of Envoy 1.40, which rejects other tracers of the API. */
const tracers: Readonly<Record<string, Tracer>> = {
  zipkin: {
    name: 'envoy.tracers.zipkin',
    cluster: 'zipkin',
    tlsName: 'tracer',
    http2: false,
    settings: () => ({
      '@type': 'type.googleapis.com/envoy.config.trace.v3.ZipkinConfig',
      collector_cluster: 'zipkin',
      collector_endpoint: '/api/v2/spans',
      collector_endpoint_version: 'HTTP_JSON',
      trace_id_128bit: true,
      shared_span_context: false,
    }),
  },
  // Envoy no longer has a Lightstep extension; Lightstep's collector accepts OpenTelemetry spans.
  lightstep: {
    name: 'envoy.tracers.opentelemetry',
    cluster: 'lightstep',
    tlsName: 'tracer',
    http2: true,
    settings: (serviceName, { accessToken }) => ({
      '@type': 'type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig',
      grpc_service: {
        envoy_grpc: { cluster_name: 'lightstep' },
        ...(typeof accessToken === 'string' &&
          accessToken !== '' && { initial_metadata: [{ key: 'lightstep-access-token', value: accessToken }] }),
      },
      service_name: serviceName,
    }),
  },
  datadog: {
    name: 'envoy.tracers.datadog',
    cluster: 'datadog_agent',
    tlsName: 'tracer',
    http2: false,
    settings: (serviceName) => ({
      '@type': 'type.googleapis.com/envoy.config.trace.v3.DatadogConfig',
      collector_cluster: 'datadog_agent',
      service_name: serviceName,
    }),
  },
};

function tracerOf({ config, serviceName, errors }: TelemetryFacts) {
  const { zipkinAddress } = config;
  const tracing: Json = config.tracing ?? (zipkinAddress ? { zipkin: { address: zipkinAddress } } : {});
  for (const [key, tracer] of Object.entries(tracers)) {
    const option = `tracing.${key}`;
    const configuredTracer = tracing[key];
    if (!isObject(configuredTracer)) continue;
    const service = serviceOf(option, { tlsSettings: tracing.tlsSettings, ...configuredTracer });
    if (service === undefined) continue;
    const token = configuredTracer.accessToken;
    if (typeof token === 'string' && !/^[\x20-\x7e]*$/.test(token)) {
      errors.addConfigError(
        `${option}.accessToken`,
        mustBeHidden('printable ASCII characters, it is sent as a header'),
      );
    }
    return { ...tracer, service, settings: tracer.settings(serviceName, configuredTracer) };
  }
  return undefined;
}

type ClusterRequirements = Pick<Tracer, 'cluster' | 'http2'> & Partial<Pick<Tracer, 'tlsName'>>;

function cluster(service: RemoteService, needs: ClusterRequirements, facts: TelemetryFacts): Json[] {
  const { cluster: name, http2 } = needs;
  const address = hostAndPort(service, facts);
  if (address === undefined) return [];
  const { host, port } = address;
  const socket = service.tls && transportSocket({ ...service, tls: service.tls }, needs, facts);
  return [
    {
      name,
      alt_stat_name: statName(name),
      type: 'STRICT_DNS',
      respect_dns_ttl: true,
      // Envoy rejects an address of another family than the lookup family.
      dns_lookup_family: isIP(host) === 6 && facts.dnsLookupFamily === 'V4_ONLY' ? 'AUTO' : facts.dnsLookupFamily,
      // As in Istio, only for Zipkin.
      ...(name === 'zipkin' && { dns_refresh_rate: '30s' }),
      connect_timeout: '1s',
      lb_policy: 'ROUND_ROBIN',
      ...(http2 && { typed_extension_protocol_options: http2Options }),
      ...(service.keepalive && { upstream_connection_options: { tcp_keepalive: keepalive(service.keepalive) } }),
      load_assignment: loadAssignment(name, host, port),
      ...(socket && { transport_socket: socket }),
    },
  ];
}

function hostAndPort(
  { option, address }: RemoteService,
  { hostIp, errors }: TelemetryFacts,
): { host: string; port: number } | undefined {
  if (address !== withHostIp(address, '') && hostIp === '') {
    errors.addConfigError(
      `${option}.address`,
      unknownReference('refers to the environment variable HOST_IP, which is not set', address),
    );
    return undefined;
  }
  const parsedAddress = parseHostAndPort(withHostIp(address, hostIp));
  if (parsedAddress === undefined) errors.addConfigError(`${option}.address`, mustBe('host:port', address));
  return parsedAddress;
}

function keepalive({ probes, time, interval }: Json): Json {
  const seconds = (value: unknown): number =>
    typeof value === 'string' ? Math.floor((durationMsOf(value) ?? 0) / 1000) : typeof value === 'number' ? value : 0;
  return {
    ...(seconds(probes) > 0 && { keepalive_probes: seconds(probes) }),
    ...(seconds(time) > 0 && { keepalive_time: seconds(time) }),
    ...(seconds(interval) > 0 && { keepalive_interval: seconds(interval) }),
  };
}

/** Certificate files of the node metadata take precedence. */
interface TlsFiles {
  readonly roots: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

type SecureService = RemoteService & { readonly tls: Json };

const maxSniBytes = 255;

function transportSocket(service: SecureService, needs: ClusterRequirements, facts: TelemetryFacts): Json | undefined {
  const { option, tls } = service;
  const files = tlsFiles(tls, facts.node.metadata);
  const missingFields = missingFiles(tls.mode, files);
  for (const field of missingFields)
    facts.errors.addConfigError(`${option}.tlsSettings.${field}`, missingField(`with mode ${tls.mode}`));
  if (tls.mode === 'ISTIO_MUTUAL' && !facts.hasSecrets) {
    const message = 'requires a workload certificate, which this agent does not obtain: use DISABLE, SIMPLE or MUTUAL';
    facts.errors.addConfigError(`${option}.tlsSettings.mode`, disallowedValue(message, tls.mode));
  }
  if (tls.mode === undefined) return undefined;
  const sni = text(tls.sni) ?? (tls.mode === 'ISTIO_MUTUAL' ? (needs.tlsName ?? needs.cluster) : undefined);
  if (Buffer.byteLength(sni ?? '') > maxSniBytes)
    facts.errors.addConfigError(
      `${option}.tlsSettings.sni`,
      tooLarge(maxSniBytes, Buffer.byteLength(sni ?? ''), 'bytes'),
    );
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      common_tls_context: {
        ...(needs.http2 && { alpn_protocols: ['h2'] }),
        ...ownCertificate(tls.mode, files),
        ...validationContext(tls, files),
      },
      ...(sni !== undefined && { sni }),
    },
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function tlsFiles(tls: Json, metadata: Json): TlsFiles {
  return {
    roots: text(metadata.TLS_CLIENT_ROOT_CERT) ?? text(tls.caCertificates),
    certificate: text(metadata.TLS_CLIENT_CERT_CHAIN) ?? text(tls.clientCertificate),
    key: text(metadata.TLS_CLIENT_KEY) ?? text(tls.privateKey),
  };
}

function missingFiles(mode: unknown, { roots, certificate, key }: TlsFiles): string[] {
  return [
    ...((mode === 'SIMPLE' || mode === 'MUTUAL') && roots === undefined ? ['caCertificates'] : []),
    ...(mode === 'MUTUAL' && certificate === undefined ? ['clientCertificate'] : []),
    ...(mode === 'MUTUAL' && key === undefined ? ['privateKey'] : []),
  ];
}

function ownCertificate(mode: unknown, { certificate = '', key = '' }: TlsFiles): Json {
  if (mode === 'ISTIO_MUTUAL') return { tls_certificate_sds_secret_configs: [requiredSecret('default')] };
  if (mode !== 'MUTUAL') return {};
  return { tls_certificate_sds_secret_configs: [optionalSecret(`file-cert:${certificate}~${key}`)] };
}

function validationContext(tls: Json, { roots = '' }: TlsFiles): Json {
  const names = Array.isArray(tls.subjectAltNames) ? (tls.subjectAltNames as string[]) : [];
  const matchers = names.length > 0 && {
    match_typed_subject_alt_names: names.map((exact) => ({
      san_type: exact.includes('://') ? 'URI' : isIP(exact) === 0 ? 'DNS' : 'IP_ADDRESS',
      matcher: { exact },
    })),
  };
  return {
    combined_validation_context: {
      default_validation_context: { ...matchers },
      validation_context_sds_secret_config:
        tls.mode === 'ISTIO_MUTUAL' ? requiredSecret('ROOTCA') : optionalSecret(`file-root:${roots}`),
    },
  };
}
