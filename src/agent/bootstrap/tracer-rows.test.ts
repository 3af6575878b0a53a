/** Tracers of the bootstrap, one test per requirement (test/spec-rows/agent-rows.ts). */
import { describe, expect, test } from 'vitest';
import { bootstrapOfConfig, clusterOf } from '../../../test/fixtures/configured-bootstraps.ts';
import { errorWith } from '../../../test/fixtures/error-details.ts';
import { generateBootstrap } from '../../../test/fixtures/generated-bootstrap.ts';

describe('tracers of the bootstrap (agent §5.4)', () => {
  test('include zipkin', () => {
    const bootstrap = bootstrapOfConfig('tracing: {zipkin: {address: "z:1"}}');
    expect(bootstrap.tracing.http).toEqual({
      name: 'envoy.tracers.zipkin',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.config.trace.v3.ZipkinConfig',
        collector_cluster: 'zipkin',
        collector_endpoint: '/api/v2/spans',
        collector_endpoint_version: 'HTTP_JSON',
        trace_id_128bit: true,
        shared_span_context: false,
      },
    });
    expect(clusterOf(bootstrap, 'zipkin')).toMatchObject({
      type: 'STRICT_DNS',
      respect_dns_ttl: true,
      dns_refresh_rate: '30s',
      connect_timeout: '1s',
    });
  });

  test.each([
    ['tracing: {datadog: {address: "d:1"}}', 'datadog_agent'],
    ['tracing: {lightstep: {address: "l:1", accessToken: x}}', 'lightstep'],
    ['envoyMetricsService: {address: "m:1"}', 'envoy_metrics_service'],
    ['envoyAccessLogService: {address: "m:1"}', 'envoy_accesslog_service'],
  ])("keep Envoy's default DNS refresh rate with %s for cluster %s (agent §5.4)", (config, name) => {
    expect(clusterOf(bootstrapOfConfig(config), name)).not.toHaveProperty('dns_refresh_rate');
  });

  test('include datadog', () => {
    const { tracing } = bootstrapOfConfig('tracing: {datadog: {address: "d:1"}}', { flags: { serviceCluster: 's' } });
    expect(tracing.http.typed_config).toMatchObject({ collector_cluster: 'datadog_agent', service_name: 's' });
  });

  test('use OpenTelemetry for lightstep, with a separate cluster and the token as a header', () => {
    const bootstrap = bootstrapOfConfig('tracing: {lightstep: {address: "l:1", accessToken: t}}');
    expect(bootstrap.tracing.http).toMatchObject({
      name: 'envoy.tracers.opentelemetry',
      typed_config: { grpc_service: { initial_metadata: [{ key: 'lightstep-access-token', value: 't' }] } },
    });
    expect(clusterOf(bootstrap, 'lightstep')).toHaveProperty('typed_extension_protocol_options');
    expect(() => bootstrapOfConfig('tracing: {lightstep: {address: "l:1", accessToken: "a\\nb"}}')).toThrow(
      errorWith({ code: 'FIELD_FORMAT_INVALID', path: 'tracing.lightstep.accessToken' }),
    );
  });

  test.each(['openCensusAgent', 'stackdriver'])(
    'are rejected if they select %s, which Envoy no longer supports (agent §5.4)',
    (tracer) => {
      const { bootstrap, options } = generateBootstrap({ env: { PROXY_CONFIG: `tracing: {${tracer}: {}}` } });
      expect(bootstrap).not.toHaveProperty('tracing');
      expect(options.warnings).toMatchObject([{ event: 'option.fieldIgnored', field: `tracing.${tracer}` }]);
    },
  );

  test('have the server name `tracer` with ISTIO_MUTUAL', () => {
    const cluster = clusterOf(
      bootstrapOfConfig('tracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: ISTIO_MUTUAL}}'),
      'zipkin',
    );
    expect(cluster).toMatchObject({ transport_socket: { typed_config: { sni: 'tracer' } } });
    expect(JSON.stringify(cluster)).not.toContain('alpn_protocols');
  });
});
