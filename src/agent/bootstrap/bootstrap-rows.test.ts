/** Each row of spec/agent.md §5 (and of §4.2 what a bootstrap is made of), by its row. */
import { describe, expect, test } from 'vitest';
import { madeBootstrap, type Sources } from '../../../test/fixtures/made-bootstrap.ts';

const bootstrapOf = (sources: Sources = {}) => madeBootstrap(sources).bootstrap;
const configured = (config: string, more: Sources = {}) =>
  bootstrapOf({ ...more, env: { ...more.env, PROXY_CONFIG: config } });
const annotated = (annotations: Readonly<Record<string, string>>): Sources => ({
  files: {
    'etc/istio/pod/annotations': Object.entries(annotations)
      .map(([key, value]) => `${key}=${JSON.stringify(value)}\n`)
      .join(''),
  },
});
const labelled = (labels: string, env: Readonly<Record<string, string>> = {}): Sources => ({
  files: { 'etc/istio/pod/labels': labels },
  env,
});
const clusterOf = (bootstrap: { static_resources: { clusters: { name: string }[] } }, name: string) =>
  bootstrap.static_resources.clusters.find((cluster) => cluster.name === name);

describe('§5.1 node metadata', () => {
  const metadata = (sources: Sources) => bootstrapOf(sources).node.metadata;

  test.each<[row: string, sources: Sources, expected: object]>([
    [
      'proxyMetadata gives what begins with ISTIO_META_, the environment wins',
      {
        env: { PROXY_CONFIG: 'proxyMetadata: {ISTIO_META_A: mesh, ISTIO_META_B: mesh, C: mesh}', ISTIO_META_B: 'own' },
      },
      { A: 'mesh', B: 'own', C: undefined },
    ],
    [
      'ISTIO_METAJSON_… is merged at the top',
      { env: { ISTIO_METAJSON_ANY: '{"A": [1]}' } },
      { A: [1], ANY: undefined },
    ],
    [
      'INSTANCE_IPS, each once',
      { flags: { instanceIPs: '10.0.0.1,10.0.0.2,10.0.0.1' } },
      { INSTANCE_IPS: '10.0.0.1,10.0.0.2' },
    ],
    [
      'options win over keys that are not known',
      { env: { ISTIO_META_ENVOY_STATUS_PORT: '9' } },
      { ENVOY_STATUS_PORT: 15021 },
    ],
    ['STS_PORT', { flags: { stsPort: '15463' } }, { STS_PORT: '15463' }],
    ['STS_PORT of 0 is none', { flags: { stsPort: '0' } }, { STS_PORT: undefined }],
    [
      'EXIT_ON_ZERO_ACTIVE_CONNECTIONS is a text',
      { env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: '1' } },
      { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' },
    ],
    [
      'EXIT_ON_ZERO_ACTIVE_CONNECTIONS that is off is not there',
      { env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'false' } },
      { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: undefined },
    ],
    [
      'ISTIO_METAJSON_LABELS at the top too, but for what has a meaning there',
      { env: { ISTIO_METAJSON_LABELS: '{"app": "a", "NETWORK": "n", "TIER": "label"}', ISTIO_META_TIER: 'own' } },
      { app: 'a', NETWORK: undefined, TIER: 'own' },
    ],
    ['PILOT_SAN', { flags: { pilotSAN: 'a,b' } }, { PILOT_SAN: ['a', 'b'] }],
    ['OUTLIER_LOG_PATH', { flags: { outlierLogPath: '/dev/null' } }, { OUTLIER_LOG_PATH: '/dev/null' }],
    ['PLATFORM_METADATA', { flags: { platformMetadata: '{"a": "b"}' } }, { PLATFORM_METADATA: { a: 'b' } }],
    ['PLATFORM_METADATA that is empty', { flags: { platformMetadata: '{}' } }, { PLATFORM_METADATA: undefined }],
    [
      'LABELS: static ones below those of the file, without pod-template-hash',
      labelled('a="file"\npod-template-hash="1"\n', { ISTIO_METAJSON_LABELS: '{"a": "static", "b": "static"}' }),
      { LABELS: { a: 'file', b: 'static' }, STATIC_LABELS: { a: 'static', b: 'static' } },
    ],
    ['ANNOTATIONS', annotated({ a: 'b' }), { ANNOTATIONS: { a: 'b' } }],
  ])('§5.1 %s', (_, sources, expected) => {
    const found = metadata(sources);
    for (const [key, value] of Object.entries(expected)) expect({ [key]: found[key] }).toEqual({ [key]: value });
  });

  test('§5.1 PROXY_CONFIG is the merged one, as people write it', () => {
    expect(metadata({ env: { PROXY_CONFIG: 'drainDuration: 1m' } }).PROXY_CONFIG).toMatchObject({
      drainDuration: '60s',
      statusPort: 15020,
    });
  });

  test('§5.1 bad JSON is a warning, and left out; so are labels that are no texts', () => {
    const env = { ISTIO_METAJSON_A: '{', ISTIO_METAJSON_LABELS: '{"a": 1}' };
    const { bootstrap, warnings } = madeBootstrap({ env });
    expect(bootstrap.node.metadata).not.toHaveProperty('LABELS');
    expect(warnings).toEqual([
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_A', reason: expect.stringMatching(/JSON/) },
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_LABELS', reason: expect.stringMatching(/"a"/) },
    ]);
  });

  test('§5.1 a credential server that answers', () => {
    expect(madeBootstrap({}, true).bootstrap.node.metadata.credential).toBe('true');
    expect(madeBootstrap({}, false).bootstrap.node.metadata).not.toHaveProperty('credential');
  });

  test('§5.1 typed keys come first, in their order', () => {
    const keys = Object.keys(
      metadata({ env: { ISTIO_META_ABC: 'x', ISTIO_META_ISTIO_PROXY_SHA: 'y', POD_NAME: 'z' } }),
    );
    expect(keys.slice(0, 3)).toEqual(['PROXY_CONFIG', 'ISTIO_VERSION', 'INSTANCE_IPS']);
    expect(keys.indexOf('ISTIO_PROXY_SHA')).toBeLessThan(keys.indexOf('ABC'));
  });

  test.each<[string, Sources, object | undefined]>([
    ['of dots', labelled('istio-locality="r.z.s"\n'), { region: 'r', zone: 'z', sub_zone: 's' }],
    ['of slashes, in which dots mean nothing', labelled('istio-locality="r.1/z"\n'), { region: 'r.1', zone: 'z' }],
    [
      'of the platform',
      { flags: { platformMetadata: '{"gcp_location": "us-central1-a"}' } },
      { region: 'us-central1', zone: 'us-central1-a' },
    ],
    ['of nobody', {}, undefined],
  ])('§5.1 locality %s', (_, sources, expected) => {
    expect(bootstrapOf(sources).node.locality).toEqual(expected);
  });

  const shop = { POD_NAMESPACE: 'shop' };
  test.each<[string, Sources, string]>([
    ['as it is said', { flags: { serviceCluster: 'mine' }, env: shop }, 'mine'],
    ['by the app label', labelled('app="web"\n', shop), 'web.shop'],
    ['by the workload', { env: { ...shop, ISTIO_META_WORKLOAD_NAME: 'w' } }, 'w.shop'],
    ['by the namespace alone', { env: shop }, 'istio-proxy.shop'],
    ['by nothing that is empty', labelled('app=""\n', { ISTIO_META_WORKLOAD_NAME: '' }), 'istio-proxy'],
    [
      'CANONICAL_NAME_ONLY by nothing that is empty',
      labelled('service.istio.io/canonical-name=""\napp="web"\n', {
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'web',
    ],
    ['of nothing', {}, 'istio-proxy'],
    [
      'CANONICAL_NAME_ONLY',
      labelled('service.istio.io/canonical-name="c"\n', {
        ...shop,
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'c',
    ],
    [
      'CANONICAL_NAME_ONLY by the labels that stand for it, in their order',
      labelled('app="web"\napp.kubernetes.io/name="k"\n', {
        ...shop,
        ISTIO_META_WORKLOAD_NAME: 'w',
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'k',
    ],
    [
      'CANONICAL_NAME_ONLY by the app label',
      labelled('app="web"\n', { ...shop, PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY' }),
      'web',
    ],
    [
      'as a later source says it, whatever an earlier one says of labels',
      {
        env: { ...shop, PROXY_CONFIG: 'serviceCluster: mine' },
        files: { 'etc/istio/config/mesh': 'defaultConfig: {tracingServiceName: CANONICAL_NAME_ONLY}' },
      },
      'mine',
    ],
    [
      'by labels, whatever an earlier source or the flag says',
      {
        flags: { serviceCluster: 'flag' },
        env: { ...shop, PROXY_CONFIG: 'tracingServiceName: APP_LABEL_AND_NAMESPACE' },
        files: { 'etc/istio/config/mesh': 'defaultConfig: {serviceCluster: mine}' },
      },
      'istio-proxy.shop',
    ],
    [
      'CANONICAL_NAME_AND_NAMESPACE',
      { env: { ...shop, PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_AND_NAMESPACE' } },
      'istio-proxy.shop',
    ],
  ])('§5.1 node.cluster %s', (_, sources, expected) => {
    expect(bootstrapOf(sources).node.cluster).toBe(expected);
  });
});

const noAuthority = 'controlPlaneAuthPolicy: NONE';

describe('§5.2 static content', () => {
  test('§5.2 its parts, in their order', () => {
    const config = 'tracing: {zipkin: {address: "z:1"}}\nstatsdUdpAddress: "10.0.0.1:8125"';
    expect(Object.keys(configured(config, { flags: { outlierLogPath: '/dev/null' } }))).toEqual([
      ...['node', 'layered_runtime', 'bootstrap_extensions', 'overload_manager', 'stats_config', 'admin'],
      ...['dynamic_resources', 'static_resources', 'tracing', 'stats_sinks', 'cluster_manager'],
    ]);
  });

  test('§5.2 layered_runtime: what the mesh says wins, nothing takes a flag away, booleans are booleans', () => {
    const layer = (config: string) => configured(config).layered_runtime.layers[0].static_layer;
    expect(layer('')).toEqual({
      'envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst': true,
      'envoy.reloadable_features.http_reject_path_with_fragment': false,
      'envoy.reloadable_features.fixed_heap_use_allocated': true,
      'envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update': false,
      're2.max_program_size.error_level': '32768',
    });
    const said = layer('runtimeValues: {re2.max_program_size.error_level: "", a: "true", b: "1"}');
    expect(said).toMatchObject({ a: true, b: '1' });
    expect(Object.keys(said)).not.toContain('re2.max_program_size.error_level');
    expect(configured('').layered_runtime.layers.map(({ name }: { name: string }) => name)).toEqual([
      'global config',
      'admin',
    ]);
  });

  test('§5.2 bootstrap_extensions', () => {
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
  ])('§5.2 overload_manager: the limit %s', (_, sources, limit) => {
    const [monitor] = bootstrapOf(sources).overload_manager.resource_monitors;
    expect(monitor.typed_config.max_active_downstream_connections).toBe(limit);
  });

  test('§5.2 admin', () => {
    expect(configured('proxyAdminPort: 7').admin).toMatchObject({
      access_log: [{ typed_config: { path: '/dev/null' } }],
      profile_path: '/var/lib/istio/data/envoy.prof',
      address: { socket_address: { address: '127.0.0.1', port_value: 7 } },
    });
  });

  test('§5.2 dynamic_resources', () => {
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

  test('§5.2 clusters prometheus_stats and agent', () => {
    const bootstrap = configured('proxyAdminPort: 7\nstatusPort: 8');
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

  test('§5.2 clusters sds-grpc and xds-grpc', () => {
    const bootstrap = configured('configPath: /c');
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

  test('§5.2 clusters of the metrics and access log services', () => {
    const service = '{address: "s:1", tcpKeepalive: {probes: 3, time: 10s, interval: 0s}}';
    const bootstrap = configured(`envoyMetricsService: ${service}\nenvoyAccessLogService: ${service}`);
    for (const name of ['envoy_metrics_service', 'envoy_accesslog_service']) {
      expect(clusterOf(bootstrap, name)).toMatchObject({
        type: 'STRICT_DNS',
        typed_extension_protocol_options: expect.anything(),
        upstream_connection_options: { tcp_keepalive: { keepalive_probes: 3, keepalive_time: 10 } },
      });
      expect(JSON.stringify(clusterOf(bootstrap, name))).not.toContain('keepalive_interval');
    }
  });

  test('§5.2 listeners 15090 and 15021', () => {
    const [metrics, probes] = bootstrapOf().static_resources.listeners;
    expect(metrics.address).toEqual({ socket_address: { address: '0.0.0.0', port_value: 15090 } });
    expect(JSON.stringify(metrics)).toMatch(
      /"stat_prefix":"stats".*"prefix":"\/stats\/prometheus".*"cluster":"prometheus_stats"/,
    );
    expect(probes.address).toEqual({ socket_address: { address: '0.0.0.0', port_value: 15021 } });
    expect(JSON.stringify(probes)).toMatch(/"stat_prefix":"agent".*"prefix":"\/healthz\/ready".*"cluster":"agent"/);
  });

  test('§5.2 secure metrics listeners are for certificates of the mesh', () => {
    const env = {
      CA_ADDR: 'ca:1',
      ENVOY_PROMETHEUS_PORT: '0',
      ENVOY_SECURE_METRICS_PORT: '15091',
      ENVOY_SECURE_MERGED_METRICS_PORT: '15092',
    };
    const { listeners, clusters } = bootstrapOf({ env }).static_resources;
    const [, metrics, merged] = listeners;
    for (const [listener, port, cluster] of [
      [metrics, 15091, 'prometheus_stats'],
      [merged, 15092, 'agent'],
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
      // They may be late: Envoy serves without metrics then.
      expect(JSON.stringify(transport_socket)).not.toContain('initial_fetch_timeout');
    }
    expect(clusters.map(({ name }: { name: string }) => name).slice(0, 2)).toEqual(['prometheus_stats', 'agent']);
    expect(() => bootstrapOf({ env: { ENVOY_SECURE_METRICS_PORT: '1', PROXY_CONFIG: noAuthority } })).toThrow(
      /ENVOY_SECURE_METRICS_PORT: this workload has no certificate/,
    );
    expect(() => bootstrapOf({ env: { ...env, PROXY_CONFIG: 'statusPort: 0' } })).toThrow(
      /ENVOY_SECURE_MERGED_METRICS_PORT: the agent has no status port/,
    );
  });

  test('§5.2 stats_sinks: metrics service, then statsd', () => {
    const config = 'envoyMetricsServiceAddress: "m:1"\nstatsdUdpAddress: "10.0.0.1:8125"';
    expect(configured(config).stats_sinks).toMatchObject([
      { name: 'envoy.stat_sinks.metrics_service', typed_config: { transport_api_version: 'V3' } },
      { name: 'envoy.stat_sinks.statsd', typed_config: { address: { socket_address: { address: '10.0.0.1' } } } },
    ]);
  });

  test('§5.2 cluster_manager.outlier_detection.event_log_path', () => {
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
  ])('§5.2 DNS lookup family: %s', (_, sources, family, localhost) => {
    const bootstrap = configured(zipkin, sources);
    expect(clusterOf(bootstrap, 'zipkin')).toMatchObject({ dns_lookup_family: family });
    expect(bootstrap.admin.address.socket_address.address).toBe(localhost);
    const [listener] = bootstrap.static_resources.listeners;
    const more = [{ address: { socket_address: { address: '::', port_value: 15090 } } }];
    expect(listener.additional_addresses).toEqual(family === 'ALL' ? more : undefined);
  });

  const socketOf = (tls: string, more: Sources = {}) =>
    (
      clusterOf(
        configured(`envoyMetricsService: {address: "m:1", tlsSettings: ${tls}}`, more),
        'envoy_metrics_service',
      ) as {
        transport_socket?: { typed_config: { sni?: string; common_tls_context: object } };
      }
    ).transport_socket?.typed_config;

  test('§5.2 TLS: SIMPLE, MUTUAL, ISTIO_MUTUAL by the secret server; DISABLE has none', () => {
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
    '§5.2 TLS under %s: files are named, not looked for; the secret server reads them',
    (policy) => {
      const { options, bootstrap } = madeBootstrap({
        env: {
          PROXY_CONFIG: `{controlPlaneAuthPolicy: ${policy}, tracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: SIMPLE, caCertificates: /none/ca}}}`,
          JWT_POLICY: 'none',
        },
      });
      expect(options.identity.settings.source).toBe('files of services');
      const socket = JSON.stringify(clusterOf(bootstrap, 'zipkin'));
      expect(socket).toContain('"name":"file-root:/none/ca"');
      // It may never come: Envoy does not wait for ever.
      expect(socket).not.toContain('initial_fetch_timeout');
      expect(bootstrap.node.metadata.WORKLOAD_CERTIFICATES).toBe('false');
      expect(() =>
        configured(
          'controlPlaneAuthPolicy: NONE\ntracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: ISTIO_MUTUAL}}',
        ),
      ).toThrow(/ISTIO_MUTUAL: this workload has no certificate of its own/);
    },
  );

  test('§5.2 TLS: TLS_CLIENT_… of the metadata win over the paths', () => {
    const env = { ISTIO_META_TLS_CLIENT_ROOT_CERT: '/own' };
    expect(JSON.stringify(socketOf('{mode: SIMPLE, caCertificates: /ca}', { env }))).toContain('file-root:/own');
  });

  test('§5.2 addresses that are none are told with their option; IPv6 is in brackets', () => {
    expect(() => configured('envoyMetricsService: {address: "m"}')).toThrow(
      /envoyMetricsService\.address "m" is not host:port/,
    );
    const cluster = clusterOf(configured('tracing: {zipkin: {address: "[2001:db8::1]:9411"}}'), 'zipkin');
    expect(JSON.stringify(cluster)).toContain('"address":"2001:db8::1","port_value":9411');
  });
});

describe('§5.3 statistics', () => {
  const tags = (sources: Sources = {}): { tag_name: string; regex: string }[] =>
    bootstrapOf(sources).stats_config.stats_tags;
  const patterns = (sources: Sources = {}) => bootstrapOf(sources).stats_config.stats_matcher.inclusion_list.patterns;

  test('§5.3, §5.2 stats_config: tags, in their order', () => {
    expect(tags().map(({ tag_name }) => tag_name)).toEqual([
      ...[
        'cluster_name',
        'http_conn_manager_prefix',
        'thread_name',
        'tcp_prefix',
        'response_code',
        'response_code_class',
      ],
      ...['http_conn_manager_listener_prefix', 'listener_address', 'mongo_prefix', 'cache', 'component', 'tag'],
      ...['wasm_filter', 'authz_enforce_result', 'authz_dry_run_action', 'authz_dry_run_result'],
    ]);
    expect(bootstrapOf().stats_config.use_all_default_tags).toBe(false);
  });

  test.each([
    ['cluster_name', String.raw`^cluster(\.(.+);)`],
    ['http_conn_manager_prefix', String.raw`^http\.(((?:[_.[:digit:]\w]*|[_\[\]aAbBcCdDeEfF[:digit:]\w\:]*));\.)`],
    ['thread_name', String.raw`^server(\.(.+))\.watchdog`],
    ['tcp_prefix', String.raw`^tcp\.((.*?)\.)\w+?$`],
    ['response_code', String.raw`_rq(_(\d{3}))$`],
    ['response_code_class', String.raw`_rq(_(\dxx))$`],
    [
      'http_conn_manager_listener_prefix',
      String.raw`^listener(?=\.).*?\.http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`,
    ],
    ['listener_address', String.raw`^listener\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`],
    ['mongo_prefix', String.raw`^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$`],
    ['cache', String.raw`(cache\.(.+?)\.)`],
    ['component', String.raw`(component\.(.+?)\.)`],
    ['tag', String.raw`(tag\.(.+?);\.)`],
    ['wasm_filter', String.raw`(wasm_filter\.(.+?)\.)`],
    ['authz_enforce_result', String.raw`rbac(\.(allowed|denied))`],
    ['authz_dry_run_action', String.raw`(\.istio_dry_run_(allow|deny)_)`],
    ['authz_dry_run_result', String.raw`(\.shadow_(allowed|denied))`],
  ])('§5.3 tag %s', (name, regex) => {
    expect(tags()).toContainEqual({ tag_name: name, regex });
  });

  test('§5.3 extra tags: the mesh’s, then the annotation’s, each once', () => {
    const sources = annotated({ 'sidecar.istio.io/extraStatTags': 'b, c' });
    const extra = tags({ ...sources, env: { PROXY_CONFIG: 'extraStatTags: [a, b]' } }).slice(9, 12);
    expect(extra).toEqual(
      ['a', 'b', 'c'].map((name) => ({ tag_name: name, regex: String.raw`(${name}=\.=(.*?);\.;)` })),
    );
  });

  test('§5.3 the inclusion list, in its order', () => {
    expect(patterns()).toEqual([
      { prefix: 'reporter=' },
      ...['cluster_manager', 'listener_manager', 'server', 'cluster.xds-grpc', 'wasm'].map((prefix) => ({ prefix })),
      // Ours: it tells why an Envoy waits.
      { prefix: 'control_plane' },
      ...['rbac.allowed', 'rbac.denied', 'shadow_allowed', 'shadow_denied'].map((suffix) => ({ suffix })),
      { safe_regex: { regex: String.raw`vhost\..*\.route\..*` } },
      { prefix: 'component' },
      { prefix: 'istio' },
    ]);
  });

  test('§5.3 downstream_cx_active with exit on zero', () => {
    expect(patterns({ env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' } })).toContainEqual({
      suffix: 'downstream_cx_active',
    });
  });

  test.each([
    ['Prefixes', (text: string) => ({ prefix: text })],
    ['Suffixes', (text: string) => ({ suffix: text })],
    ['Regexps', (text: string) => ({ safe_regex: { regex: text } })],
  ])('§5.3 statsInclusion%s: the annotation instead of the mesh, {pod_ip} once for each address', (list, pattern) => {
    const env = { PROXY_CONFIG: `proxyStatsMatcher: {inclusion${list}: [mesh]}` };
    expect(patterns({ env })).toContainEqual(pattern('mesh'));
    const empty = annotated({ [`sidecar.istio.io/statsInclusion${list}`]: '' });
    expect(patterns({ ...empty, env })).toContainEqual(pattern('mesh'));
    const own = annotated({ [`sidecar.istio.io/statsInclusion${list}`]: 'own,x{pod_ip}' });
    const found = patterns({ ...own, env, flags: { instanceIPs: '10.0.0.1,10.0.0.2' } });
    for (const text of ['own', 'x10.0.0.1', 'x10.0.0.2']) expect(found).toContainEqual(pattern(text));
    expect(found).not.toContainEqual(pattern('mesh'));
  });

  test('§5.2 flush and eviction intervals, histogram buckets', () => {
    const bootstrap = bootstrapOf(
      annotated({
        'sidecar.istio.io/statsFlushInterval': '2s',
        'sidecar.istio.io/statsEvictionInterval': '10s',
        'sidecar.istio.io/statsHistogramBuckets': '{"istio": [1, 5]}',
      }),
    );
    expect(bootstrap).toMatchObject({ stats_flush_interval: '2s', stats_eviction_interval: '10s' });
    expect(bootstrap.stats_config.histogram_bucket_settings).toEqual([{ match: { prefix: 'istio' }, buckets: [1, 5] }]);
  });

  test('§5.2 an eviction interval that is no multiple is left out, with a warning', () => {
    const { bootstrap, warnings } = madeBootstrap(annotated({ 'sidecar.istio.io/statsEvictionInterval': '7s' }));
    expect(bootstrap).not.toHaveProperty('stats_eviction_interval');
    expect(warnings).toEqual([
      {
        ...{ event: 'option.ignored', setting: 'annotation sidecar.istio.io/statsEvictionInterval', value: '7000ms' },
        reason: 'must be a multiple of the flush interval',
      },
    ]);
  });

  test.each([
    ['statsFlushInterval', '6m', /must be a duration from 1ms to 5m/],
    ['statsEvictionInterval', 'soon', /must be a duration from 1ms to 5m/],
    ['statsHistogramBuckets', '{"a": [2, 1]}', /a: must be numbers above 0/],
    ['statsHistogramBuckets', '{', /must be a JSON object/],
  ])('§5.2 %s that Envoy would refuse (%s) is left out, with a warning', (name, value, why) => {
    const { bootstrap, warnings } = madeBootstrap(annotated({ [`sidecar.istio.io/${name}`]: value }));
    expect(bootstrap).toEqual({ ...bootstrapOf({}), node: bootstrap.node });
    const setting = `annotation sidecar.istio.io/${name}`;
    expect(warnings).toMatchObject([{ event: 'option.ignored', setting, reason: expect.stringMatching(why) }]);
  });

  test.each<[string, Sources, RegExp]>([
    [
      'an expression',
      annotated({ 'sidecar.istio.io/statsInclusionRegexps': '(' }),
      /statsInclusionRegexps: "\(" must be an RE2/,
    ],
    [
      'an empty prefix',
      { env: { PROXY_CONFIG: 'proxyStatsMatcher: {inclusionPrefixes: [""]}' } },
      /inclusionPrefixes: "" must not be empty/,
    ],
    ['a tag', { env: { PROXY_CONFIG: 'extraStatTags: ["a("]' } }, /extraStatTags: "a\(" is no name of a tag/],
  ])('§5.3 what Envoy would refuse is refused with its source: %s', (_, sources, told) => {
    expect(() => bootstrapOf(sources)).toThrow(told);
  });
});

describe('§5.4 tracers', () => {
  test('§5.4 zipkin', () => {
    const bootstrap = configured('tracing: {zipkin: {address: "z:1"}}');
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
  ])('§5.4 %s leaves the rate of DNS queries of cluster %s to Envoy', (config, name) => {
    expect(clusterOf(configured(config), name)).not.toHaveProperty('dns_refresh_rate');
  });

  test('§5.4 datadog', () => {
    const { tracing } = configured('tracing: {datadog: {address: "d:1"}}', { flags: { serviceCluster: 's' } });
    expect(tracing.http.typed_config).toMatchObject({ collector_cluster: 'datadog_agent', service_name: 's' });
  });

  test('§5.4 lightstep is OpenTelemetry to a cluster of its own, with the token as a header', () => {
    const bootstrap = configured('tracing: {lightstep: {address: "l:1", accessToken: t}}');
    expect(bootstrap.tracing.http).toMatchObject({
      name: 'envoy.tracers.opentelemetry',
      typed_config: { grpc_service: { initial_metadata: [{ key: 'lightstep-access-token', value: 't' }] } },
    });
    expect(clusterOf(bootstrap, 'lightstep')).toHaveProperty('typed_extension_protocol_options');
    expect(() => configured('tracing: {lightstep: {address: "l:1", accessToken: "a\\nb"}}')).toThrow(
      /accessToken must be/,
    );
  });

  test.each(['openCensusAgent', 'stackdriver'])('§5.4 %s: Envoy has none, which is told', (tracer) => {
    const { bootstrap, options } = madeBootstrap({ env: { PROXY_CONFIG: `tracing: {${tracer}: {}}` } });
    expect(bootstrap).not.toHaveProperty('tracing');
    expect(options.warnings).toMatchObject([{ event: 'option.fieldIgnored', field: `tracing.${tracer}` }]);
  });

  test('§5.4 TLS of a tracer; its name for ISTIO_MUTUAL is tracer', () => {
    const cluster = clusterOf(
      configured('tracing: {zipkin: {address: "z:1"}, tlsSettings: {mode: ISTIO_MUTUAL}}'),
      'zipkin',
    );
    expect(cluster).toMatchObject({ transport_socket: { typed_config: { sni: 'tracer' } } });
    expect(JSON.stringify(cluster)).not.toContain('alpn_protocols');
  });
});

describe('§4.2 templates', () => {
  const made = (template: string, name = 't.json') =>
    bootstrapOf({ env: { ISTIO_BOOTSTRAP: `<folder>/${name}` }, files: { [name]: template } });

  test('§4.2 a template has the values of the bootstrap, as JSON or YAML', () => {
    const json =
      '{"node": {"id": "{{ .nodeID }}", "cluster": {{ .cluster | toJSON }}, "metadata": {{ .meta_json_str }}}, "p": {{ .config.ProxyAdminPort }}}';
    expect(made(json)).toMatchObject({
      node: { cluster: 'istio-proxy', metadata: { INSTANCE_IPS: '10.1.2.3' } },
      p: 15000,
    });
    expect(made('p: {{ .config.StatusPort }}\nh: "{{ .localhost }}"\n', 't.yaml.tmpl')).toEqual({
      p: 15020,
      h: '127.0.0.1',
    });
    expect(made('{{ toJSON .bootstrap }}')).toEqual(bootstrapOf());
  });

  test.each([
    ['{{ if }', /t\.json:1:7: unexpected character "}"/],
    ['{"a": {{ .none }}}', /t\.json:1:10: unknown field "none" of the values of a bootstrap/],
    ['{"a": {{ .zone }}}', /t\.json: its output is not JSON/],
    ['[]', /t\.json: its output is not an object/],
  ])('§4.2 reports an error of a template: %s', (template, told) => {
    expect(() => made(template)).toThrow(told);
  });
});
