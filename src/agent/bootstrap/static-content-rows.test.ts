/** Static clusters, listeners and layers of a bootstrap, one test per requirement (test/spec-rows/agent-rows.ts). */
import { describe, expect, test } from 'vitest';
import { bootstrapOf, bootstrapOfConfig, clusterOf } from '../../../test/fixtures/configured-bootstraps.ts';
import { errorWith } from '../../../test/fixtures/error-details.ts';
import { generateBootstrap, type Sources } from '../../../test/fixtures/generated-bootstrap.ts';

const noAuthority = 'controlPlaneAuthPolicy: NONE';

describe('static content of the bootstrap (agent §5.2)', () => {
  test('has a fixed order', () => {
    const config = 'tracing: {zipkin: {address: "z:1"}}\nstatsdUdpAddress: "10.0.0.1:8125"';
    expect(Object.keys(bootstrapOfConfig(config, { flags: { outlierLogPath: '/dev/null' } }))).toEqual([
      ...['node', 'layered_runtime', 'bootstrap_extensions', 'overload_manager', 'stats_config', 'admin'],
      ...['dynamic_resources', 'static_resources', 'tracing', 'stats_sinks', 'cluster_manager'],
    ]);
  });

  test('sets layered_runtime flags of the mesh as JSON booleans, and removes those with an empty value', () => {
    const layer = (config: string) => bootstrapOfConfig(config).layered_runtime.layers[0].static_layer;
    expect(layer('')).toEqual({
      'envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst': true,
      'envoy.reloadable_features.http_reject_path_with_fragment': false,
      'envoy.reloadable_features.fixed_heap_use_allocated': true,
      'envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update': false,
      're2.max_program_size.error_level': '32768',
    });
    const runtimeFlags = layer('runtimeValues: {re2.max_program_size.error_level: "", a: "true", b: "1"}');
    expect(runtimeFlags).toMatchObject({ a: true, b: '1' });
    expect(Object.keys(runtimeFlags)).not.toContain('re2.max_program_size.error_level');
    expect(bootstrapOfConfig('').layered_runtime.layers.map(({ name }: { name: string }) => name)).toEqual([
      'global config',
      'admin',
    ]);
  });

  test('declares bootstrap_extensions', () => {
    expect(bootstrapOf().bootstrap_extensions).toMatchObject([
      { name: 'envoy.bootstrap.internal_listener', typed_config: { value: { buffer_size_kb: 64 } } },
    ]);
  });

  test.each<[string, Sources, number]>([
    ['by default', {}, 2_147_483_647],
    [
      'of the runtime flag',
      { env: { PROXY_CONFIG: 'runtimeValues: {overload.global_downstream_max_connections: "3"}' } },
      3,
    ],
    [
      'of the metadata',
      {
        env: {
          ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS: '2',
          PROXY_CONFIG: 'runtimeValues: {overload.global_downstream_max_connections: "3"}',
        },
      },
      2,
    ],
    [
      'of connectionSettings',
      {
        env: {
          ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS: '2',
          PROXY_CONFIG: 'connectionSettings: {globalDownstreamConnectionLimit: 1}',
        },
      },
      1,
    ],
  ])('sets the overload_manager limit %s (agent §5.2)', (_, sources, limit) => {
    const [monitor] = bootstrapOf(sources).overload_manager.resource_monitors;
    expect(monitor.typed_config.max_active_downstream_connections).toBe(limit);
  });

  test('configures the admin interface', () => {
    expect(bootstrapOfConfig('proxyAdminPort: 7').admin).toMatchObject({
      access_log: [{ typed_config: { path: '/dev/null' } }],
      profile_path: '/var/lib/istio/data/envoy.prof',
      address: { socket_address: { address: '127.0.0.1', port_value: 7 } },
    });
  });

  test('configures dynamic_resources', () => {
    const fromStream = { ads: {}, initial_fetch_timeout: '0s', resource_api_version: 'V3' };
    const resources = bootstrapOf().dynamic_resources;
    expect(resources).toMatchObject({ lds_config: fromStream, cds_config: fromStream });
    expect(resources.ads_config).toMatchObject({
      api_type: 'GRPC',
      set_node_on_first_message_only: true,
      transport_api_version: 'V3',
      grpc_services: [{ envoy_grpc: { cluster_name: 'xds-grpc' } }],
    });
    expect(bootstrapOf({ env: { ISTIO_DELTA_XDS: 'true' } }).dynamic_resources.ads_config.api_type).toBe('DELTA_GRPC');
  });

  test('has the clusters prometheus_stats and agent', () => {
    const bootstrap = bootstrapOfConfig('proxyAdminPort: 7\nstatusPort: 8');
    for (const [name, port_value] of [
      ['prometheus_stats', 7],
      ['agent', 8],
    ] as const) {
      expect(clusterOf(bootstrap, name)).toMatchObject({
        type: 'STATIC',
        connect_timeout: '0.250s',
        lb_policy: 'ROUND_ROBIN',
      });
      expect(JSON.stringify(clusterOf(bootstrap, name))).toContain(`"address":"127.0.0.1","port_value":${port_value}`);
    }
  });

  test('has the clusters sds-grpc and xds-grpc', () => {
    const bootstrap = bootstrapOfConfig('configPath: /c');
    expect(clusterOf(bootstrap, 'sds-grpc')).toMatchObject({ type: 'STATIC', connect_timeout: '1s' });
    expect(JSON.stringify(clusterOf(bootstrap, 'sds-grpc'))).toContain('./var/run/secrets/workload-spiffe-uds/socket');
    const limits = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };
    expect(clusterOf(bootstrap, 'xds-grpc')).toMatchObject({
      type: 'STATIC',
      connect_timeout: '1s',
      circuit_breakers: {
        thresholds: [
          { priority: 'DEFAULT', ...limits },
          { priority: 'HIGH', ...limits },
        ],
      },
      upstream_connection_options: { tcp_keepalive: { keepalive_time: 300 } },
      max_requests_per_connection: 1,
    });
    expect(JSON.stringify(clusterOf(bootstrap, 'xds-grpc'))).toContain('{"pipe":{"path":"/c/XDS"}}');
  });

  test('has clusters for the metrics and access log services', () => {
    const service = '{address: "s:1", tcpKeepalive: {probes: 3, time: 10s, interval: 0s}}';
    const bootstrap = bootstrapOfConfig(`envoyMetricsService: ${service}\nenvoyAccessLogService: ${service}`);
    for (const name of ['envoy_metrics_service', 'envoy_accesslog_service']) {
      expect(clusterOf(bootstrap, name)).toMatchObject({
        type: 'STRICT_DNS',
        typed_extension_protocol_options: expect.anything(),
        upstream_connection_options: { tcp_keepalive: { keepalive_probes: 3, keepalive_time: 10 } },
      });
      expect(JSON.stringify(clusterOf(bootstrap, name))).not.toContain('keepalive_interval');
    }
  });

  test('has the listeners 15090 and 15021', () => {
    const [metrics, probes] = bootstrapOf().static_resources.listeners;
    expect(metrics.address).toEqual({ socket_address: { address: '0.0.0.0', port_value: 15090 } });
    expect(JSON.stringify(metrics)).toMatch(
      /"stat_prefix":"stats".*"prefix":"\/stats\/prometheus".*"cluster":"prometheus_stats"/,
    );
    expect(probes.address).toEqual({ socket_address: { address: '0.0.0.0', port_value: 15021 } });
    expect(JSON.stringify(probes)).toMatch(/"stat_prefix":"agent".*"prefix":"\/healthz\/ready".*"cluster":"agent"/);
  });

  test('requires mesh certificates from clients of the secure metrics listeners', () => {
    const env = {
      CA_ADDR: 'ca:1',
      ENVOY_PROMETHEUS_PORT: '0',
      ENVOY_SECURE_METRICS_PORT: '15091',
      ENVOY_SECURE_MERGED_METRICS_PORT: '15092',
    };
    const { listeners, clusters } = bootstrapOf({ env }).static_resources;
    const [, metrics, mergedMetrics] = listeners;
    for (const [listener, port, cluster] of [
      [metrics, 15091, 'prometheus_stats'],
      [mergedMetrics, 15092, 'agent'],
    ] as const) {
      expect(listener.address).toEqual({ socket_address: { address: '0.0.0.0', port_value: port } });
      const [{ transport_socket, filters }] = listener.filter_chains;
      expect(JSON.stringify(filters)).toMatch(new RegExp(`"prefix":"/stats/prometheus".*"cluster":"${cluster}"`));
      expect(transport_socket.typed_config).toMatchObject({
        require_client_certificate: true,
        common_tls_context: {
          tls_certificate_sds_secret_configs: [{ name: 'default' }],
          combined_validation_context: { validation_context_sds_secret_config: { name: 'ROOTCA' } },
        },
      });
      // Envoy serves without metrics until certificates arrive.
      expect(JSON.stringify(transport_socket)).not.toContain('initial_fetch_timeout');
    }
    expect(clusters.map(({ name }: { name: string }) => name).slice(0, 2)).toEqual(['prometheus_stats', 'agent']);
    expect(() => bootstrapOf({ env: { ENVOY_SECURE_METRICS_PORT: '1', PROXY_CONFIG: noAuthority } })).toThrow(
      errorWith({ code: 'FIELD_NOT_ALLOWED', path: 'ENVOY_SECURE_METRICS_PORT' }),
    );
    expect(() => bootstrapOf({ env: { ...env, PROXY_CONFIG: 'statusPort: 0' } })).toThrow(
      errorWith({ code: 'FIELD_NOT_ALLOWED', path: 'ENVOY_SECURE_MERGED_METRICS_PORT' }),
    );
  });

  test('lists the metrics service before statsd in stats_sinks', () => {
    const config = 'envoyMetricsServiceAddress: "m:1"\nstatsdUdpAddress: "10.0.0.1:8125"';
    expect(bootstrapOfConfig(config).stats_sinks).toMatchObject([
      { name: 'envoy.stat_sinks.metrics_service', typed_config: { transport_api_version: 'V3' } },
      { name: 'envoy.stat_sinks.statsd', typed_config: { address: { socket_address: { address: '10.0.0.1' } } } },
    ]);
  });

  test('sets cluster_manager.outlier_detection.event_log_path', () => {
    const { cluster_manager } = bootstrapOf({ flags: { outlierLogPath: '/dev/null' } });
    expect(cluster_manager).toEqual({ outlier_detection: { event_log_path: '/dev/null' } });
  });

  const zipkin = 'tracing: {zipkin: {address: "z:1"}}';
  test.each<[string, Sources, family: string, localhost: string]>([
    ['IPv4', {}, 'V4_ONLY', '127.0.0.1'],
    ['IPv6 alone', { flags: { instanceIPs: '2001:db8::1' } }, 'AUTO', '::1'],
    ['both', { flags: { instanceIPs: '10.0.0.1,2001:db8::1' } }, 'V4_ONLY', '127.0.0.1'],
    [
      'dual stack',
      { flags: { instanceIPs: '10.0.0.1,2001:db8::1' }, env: { ISTIO_DUAL_STACK: 'true' } },
      'ALL',
      '127.0.0.1',
    ],
  ])('selects the DNS lookup family by addresses: %s (agent §5.2)', (_, sources, family, localhost) => {
    const bootstrap = bootstrapOfConfig(zipkin, sources);
    expect(clusterOf(bootstrap, 'zipkin')).toMatchObject({ dns_lookup_family: family });
    expect(bootstrap.admin.address.socket_address.address).toBe(localhost);
    const [listener] = bootstrap.static_resources.listeners;
    const additionalAddresses = [{ address: { socket_address: { address: '::', port_value: 15090 } } }];
    expect(listener.additional_addresses).toEqual(family === 'ALL' ? additionalAddresses : undefined);
  });

  const socketOf = (tls: string, extraSources: Sources = {}) =>
    (
      clusterOf(
        bootstrapOfConfig(`envoyMetricsService: {address: "m:1", tlsSettings: ${tls}}`, extraSources),
        'envoy_metrics_service',
      ) as {
        transport_socket?: { typed_config: { sni?: string; common_tls_context: object } };
      }
    ).transport_socket?.typed_config;

  test('takes certificates from the SDS server with the TLS modes SIMPLE, MUTUAL and ISTIO_MUTUAL, and uses no TLS with DISABLE', () => {
    expect(socketOf('{mode: SIMPLE, caCertificates: /ca, subjectAltNames: [a]}')?.common_tls_context).toMatchObject({
      alpn_protocols: ['h2'],
      combined_validation_context: {
        default_validation_context: { match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'a' } }] },
        validation_context_sds_secret_config: { name: 'file-root:/ca' },
      },
    });
    expect(
      socketOf('{mode: MUTUAL, caCertificates: /ca, clientCertificate: /c, privateKey: /k}')?.common_tls_context,
    ).toMatchObject({
      tls_certificate_sds_secret_configs: [{ name: 'file-cert:/c~/k' }],
    });
    expect(socketOf('{mode: ISTIO_MUTUAL}')).toMatchObject({
      sni: 'envoy_metrics_service',
      common_tls_context: {
        tls_certificate_sds_secret_configs: [{ name: 'default' }],
        combined_validation_context: { validation_context_sds_secret_config: { name: 'ROOTCA' } },
      },
    });
    expect(socketOf('{mode: SIMPLE, caCertificates: /ca, sni: s}')?.sni).toBe('s');
    expect(socketOf('{mode: DISABLE}')).toBeUndefined();
  });

  test.each(['NONE', 'MUTUAL_TLS'])(
    'accepts missing TLS files under %s, because the SDS server reads them (agent §5.2)',
    (policy) => {
      const { options, bootstrap } = generateBootstrap({
        env: {
          PROXY_CONFIG: `{controlPlaneAuthPolicy: ${policy}, tracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: SIMPLE, caCertificates: /none/ca}}}`,
          JWT_POLICY: 'none',
        },
      });
      expect(options.identity.settings.source).toBe('files of services');
      const socket = JSON.stringify(clusterOf(bootstrap, 'zipkin'));
      expect(socket).toContain('"name":"file-root:/none/ca"');
      // The secret may never arrive, and Envoy must not wait without limit.
      expect(socket).not.toContain('initial_fetch_timeout');
      expect(bootstrap.node.metadata.WORKLOAD_CERTIFICATES).toBe('false');
      expect(() =>
        bootstrapOfConfig(
          'controlPlaneAuthPolicy: NONE\ntracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: ISTIO_MUTUAL}}',
        ),
      ).toThrow(
        errorWith({ code: 'FIELD_NOT_ALLOWED', path: 'tracing.zipkin.tlsSettings.mode', got: '"ISTIO_MUTUAL"' }),
      );
    },
  );

  test('prefers TLS_CLIENT_… metadata to configured paths', () => {
    const env = { ISTIO_META_TLS_CLIENT_ROOT_CERT: '/own' };
    expect(JSON.stringify(socketOf('{mode: SIMPLE, caCertificates: /ca}', { env }))).toContain('file-root:/own');
  });

  test('rejects an invalid address with the name of its option, and requires brackets around IPv6 addresses', () => {
    expect(() => bootstrapOfConfig('envoyMetricsService: {address: "m"}')).toThrow(
      errorWith({ path: 'envoyMetricsService.address', expected: 'host:port', got: '"m"' }),
    );
    const cluster = clusterOf(bootstrapOfConfig('tracing: {zipkin: {address: "[2001:db8::1]:9411"}}'), 'zipkin');
    expect(JSON.stringify(cluster)).toContain('"address":"2001:db8::1","port_value":9411');
  });
});
