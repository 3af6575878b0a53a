/** Options that the agent resolves from flags, environment, files and annotations, one test per requirement (test/spec-rows/agent-rows.ts). */

import { availableParallelism } from 'node:os';
import { describe, expect, test } from 'vitest';
import { generateBootstrap, optionsOf, type Sources } from '../../../test/fixtures/generated-bootstrap.ts';
import type { ErrorFields } from '../../runtime/errors.ts';
import { envoyArguments } from '../envoy/envoy-args.ts';
import { controlPlaneRootFile } from '../identity/control-plane-roots.ts';
import { xdsHeaders } from '../xds/xds-headers.ts';
import type { ProxyOptions } from './options.ts';
import { withStatsdAddress } from './statsd-address.ts';

type Row = [row: string, sources: Sources, seen: (options: ProxyOptions) => unknown, expected: unknown];

const pod = { POD_NAME: 'web-0', POD_NAMESPACE: 'shop' };

describe('flags (agent §1.2)', () => {
  test.each<Row>([
    ['--domain', { flags: { domain: 'd' } }, (o) => o.domain, 'd'],
    ['--domain by default', { env: pod }, (o) => o.domain, 'shop.svc.cluster.local'],
    [
      '--meshConfig',
      { flags: { meshConfig: '<folder>/m' }, files: { m: 'defaultConfig: {statusPort: 7}' } },
      (o) => o.config.statusPort,
      7,
    ],
    ['--serviceCluster', { flags: { serviceCluster: 's' } }, (o) => o.config.serviceCluster, 's'],
    [
      '--proxyLogLevel',
      { flags: { proxyLogLevel: 'info,misc:error,debug' } },
      (o) => [o.logLevel.level, o.logLevel.components],
      ['debug', 'misc:error'],
    ],
    [
      '--proxyComponentLogLevel',
      { flags: { proxyComponentLogLevel: 'misc:off' } },
      (o) => o.logLevel.components,
      'misc:off',
    ],
    [
      '--concurrency',
      { flags: { concurrency: '3' }, env: { PROXY_CONFIG: 'concurrency: 5' } },
      (o) => o.concurrency,
      3,
    ],
    ['--templateFile', { flags: { templateFile: '<folder>/t' }, files: { t: '{}' } }, (o) => o.template?.text, '{}'],
    ['--outlierLogPath', { flags: { outlierLogPath: '/dev/null' } }, (o) => o.outlierLogPath, '/dev/null'],
    ['--applicationPorts', { flags: { applicationPorts: '80, 81,,80' } }, (o) => o.status.applicationPorts, [80, 81]],
    ['--applicationPorts by default', {}, (o) => o.status.applicationPorts, []],
    ['--profiling', { flags: { profiling: 'false' } }, (o) => o.status.profiling, false],
    ['--profiling by default', {}, (o) => o.status.profiling, true],
    [
      'empty --domain, --id, --statsdUdpAddress as unset',
      { flags: { domain: '', id: '', statsdUdpAddress: '' }, env: pod },
      (o) => [o.domain, o.workloadId, o.config.statsdUdpAddress],
      ['shop.svc.cluster.local', 'web-0.shop', ''],
    ],
    ['--serviceregistry', { flags: { serviceregistry: 'Consul' } }, (o) => o.domain, 'service.consul'],
    [
      '--lightstepAddress, --lightstepAccessToken, --lightstepSecure, --lightstepCacertPath',
      {
        flags: {
          lightstepAddress: 'l:1',
          lightstepAccessToken: 't',
          lightstepSecure: 'true',
          lightstepCacertPath: '/ca',
        },
      },
      (o) => o.config.tracing?.lightstep,
      { address: 'l:1', accessToken: 't' },
    ],
    ['--stsPort', { flags: { stsPort: '15463' } }, (o) => o.stsPort, 15463],
    ['--id', { flags: { id: 'a.b' } }, (o) => o.workloadId, 'a.b'],
    ['--id by default', { env: pod }, (o) => o.workloadId, 'web-0.shop'],
    [
      '--id with Consul',
      { flags: { serviceregistry: 'Consul' } },
      (o) => [o.workloadId, o.domain],
      ['10.1.2.3.service.consul', 'service.consul'],
    ],
    [
      '--id with another registry',
      { flags: { serviceregistry: 'Mock' } },
      (o) => [o.workloadId, o.domain],
      ['10.1.2.3', ''],
    ],
    [
      '--trust-domain',
      { flags: { trustDomain: 'td' }, env: { TRUST_DOMAIN: 'x' } },
      (o) => o.identity.trustDomain,
      'td',
    ],
    ['--configPath', { flags: { configPath: '/c' } }, (o) => o.config.configPath, '/c'],
    ['--binaryPath', { flags: { binaryPath: '/e' } }, (o) => o.binaryPath, '/e'],
    [
      '--customConfigFile',
      { flags: { customConfigFile: '<folder>/c' }, files: { c: '{}' } },
      (o) => o.config.customConfigFile?.endsWith('/c'),
      true,
    ],
    ['--drainDuration', { flags: { drainDuration: '7s' } }, (o) => o.config.drainDurationMs, 7_000],
    [
      '--parentShutdownDuration',
      { flags: { parentShutdownDuration: '90s' } },
      (o) => o.config.parentShutdownDurationMs,
      90_000,
    ],
    ['--discoveryAddress', { flags: { discoveryAddress: 'a:1' } }, (o) => o.config.discoveryAddress, 'a:1'],
    ['--connectTimeout', { flags: { connectTimeout: '7s' } }, (o) => o.connectTimeoutMs, 7_000],
    ['--statusPort', { flags: { statusPort: '0' } }, (o) => o.config.statusPort, 0],
    ['--proxyAdminPort', { flags: { proxyAdminPort: '7' } }, (o) => o.config.proxyAdminPort, 7],
    [
      '--controlPlaneAuthPolicy',
      { flags: { controlPlaneAuthPolicy: 'NONE' } },
      (o) => o.config.controlPlaneAuthPolicy,
      'NONE',
    ],
    [
      '--statsdUdpAddress',
      { flags: { statsdUdpAddress: '10.0.0.1:8125' } },
      (o) => o.config.statsdUdpAddress,
      '10.0.0.1:8125',
    ],
    [
      '--envoyMetricsServiceAddress',
      { flags: { envoyMetricsServiceAddress: 'm:1' } },
      (o) => o.config.envoyMetricsServiceAddress,
      'm:1',
    ],
    ['--zipkinAddress', { flags: { zipkinAddress: 'z:1' } }, (o) => o.config.tracing, { zipkin: { address: 'z:1' } }],
    [
      '--lightstepAddress, …AccessToken, …Secure, …CacertPath before Zipkin',
      {
        flags: {
          zipkinAddress: 'z:1',
          lightstepAddress: 'l:1',
          lightstepAccessToken: 't',
          lightstepSecure: 'true',
          lightstepCacertPath: '/ca',
        },
      },
      (o) => o.config.tracing,
      { lightstep: { address: 'l:1', accessToken: 't' }, tlsSettings: { mode: 'SIMPLE', caCertificates: '/ca' } },
    ],
  ])('applies %s (agent §1.2)', (_, sources, selectFields, expected) => {
    expect(selectFields(optionsOf(sources))).toEqual(expected);
  });

  test('uses the address given by --ip', () => {
    expect(optionsOf({ flags: { instanceIPs: '', ip: '10.9.8.7' } }).addresses[0]).toBe('10.9.8.7');
  });

  test('resolves the host name of --statsdUdpAddress, and warns on failure', async () => {
    const options = optionsOf({ flags: { statsdUdpAddress: 'statsd:8125' } });
    const resolvedOptions = await withStatsdAddress(options, async () => ({ address: '2001:db8::5' }));
    expect(resolvedOptions.config.statsdUdpAddress).toBe('[2001:db8::5]:8125');
    const unresolvedOptions = await withStatsdAddress(options, () => Promise.reject(new Error('no such name')));
    expect(unresolvedOptions.config).not.toHaveProperty('statsdUdpAddress');
    expect(unresolvedOptions.warnings).toEqual([
      { event: 'option.statsdUnresolved', address: 'statsd:8125', reason: 'no such name' },
    ]);
  });
});

describe('environment variables (agent §1.3)', () => {
  const metadata = (sources: Sources): Record<string, unknown> => generateBootstrap(sources).bootstrap.node.metadata;

  test.each<[row: string, sources: Sources, expected: Record<string, unknown>]>([
    ['POD_NAME, POD_NAMESPACE', { env: pod }, { NAME: 'web-0', NAMESPACE: 'shop' }],
    ['SERVICE_ACCOUNT', { env: { SERVICE_ACCOUNT: 'sa' } }, { SERVICE_ACCOUNT: 'sa' }],
    ['PROXY_CONFIG', { env: { PROXY_CONFIG: 'meshId: m' } }, { MESH_ID: 'm' }],
    ['ISTIO_META_…', { env: { ISTIO_META_A: 'b=c' } }, { A: 'b=c' }],
    ['ISTIO_METAJSON_…', { env: { ISTIO_METAJSON_X: '{"A": {"b": 1}}' } }, { A: { b: 1 } }],
    [
      'ISTIO_METAJSON_LABELS',
      { env: { ISTIO_METAJSON_LABELS: '{"a": "b"}' } },
      { LABELS: { a: 'b' }, STATIC_LABELS: { a: 'b' } },
    ],
    ['ISTIO_META_CLUSTER_ID', { env: { ISTIO_META_CLUSTER_ID: 'c' } }, { CLUSTER_ID: 'c' }],
    ['ISTIO_META_DNS_CAPTURE', { env: { ISTIO_META_DNS_CAPTURE: 'true' } }, { DNS_CAPTURE: 'true' }],
    [
      'EXIT_ON_ZERO_ACTIVE_CONNECTIONS',
      { env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' } },
      { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' },
    ],
    [
      'ENVOY_STATUS_PORT, ENVOY_PROMETHEUS_PORT',
      { env: { ENVOY_STATUS_PORT: '1', ENVOY_PROMETHEUS_PORT: '2' } },
      { ENVOY_STATUS_PORT: 1, ENVOY_PROMETHEUS_PORT: 2 },
    ],
    ['ISTIOD_SAN', { env: { ISTIOD_SAN: 'other' } }, { PILOT_SAN: ['other'] }],
  ])('sets node metadata by %s (agent §1.3)', (_, sources, expected) => {
    expect(metadata(sources)).toMatchObject(expected);
  });

  test.each<Row>([
    [
      'INSTANCE_IP',
      { flags: { instanceIPs: '' }, env: { INSTANCE_IP: '10.9.8.7' } },
      (o) => o.addresses[0],
      '10.9.8.7',
    ],
    [
      'ISTIO_BOOTSTRAP before customConfigFile',
      { flags: { customConfigFile: '/x' }, env: { ISTIO_BOOTSTRAP: '<folder>/t' }, files: { t: 'a: 1' } },
      (o) => [o.template?.text, o.config.customConfigFile],
      ['a: 1', undefined],
    ],
    [
      'ISTIO_BOOTSTRAP_OVERRIDE with HOST_IP',
      {
        env: { ISTIO_BOOTSTRAP_OVERRIDE: '<folder>/o', HOST_IP: '2001:db8::1' },
        files: { o: 'a: "$(HOST_IP) [$(HOST_IP)]"' },
      },
      (o) => o.configOverride,
      'a: "[2001:db8::1] [2001:db8::1]"',
    ],
    [
      'ISTIO_PROMETHEUS_ANNOTATIONS with a port name',
      { env: { ISTIO_PROMETHEUS_ANNOTATIONS: '{"scrape": "true", "port": "http"}' } },
      (o) => [o.status.applicationMetrics, o.warnings],
      [
        [],
        [
          {
            ...{ event: 'option.ignored', setting: 'ISTIO_PROMETHEUS_ANNOTATIONS' },
            reason: expect.stringMatching(/"http"/),
          },
        ],
      ],
    ],
    ['ISTIO_CPU_LIMIT', { env: { ISTIO_CPU_LIMIT: '3' } }, (o) => o.concurrency, 3],
    [
      'ISTIO_CPU_LIMIT 0 as one thread per processor',
      { env: { ISTIO_CPU_LIMIT: '999', PROXY_CONFIG: 'concurrency: 0' } },
      (o) => o.concurrency,
      availableParallelism(),
    ],
    [
      'TERMINATION_DRAIN_DURATION_SECONDS',
      { env: { TERMINATION_DRAIN_DURATION_SECONDS: '9' } },
      (o) => o.config.terminationDrainDurationMs,
      9_000,
    ],
    [
      'TERMINATION_DRAIN_DURATION_SECONDS, overridden by the mesh',
      { env: { TERMINATION_DRAIN_DURATION_SECONDS: '9', PROXY_CONFIG: 'terminationDrainDuration: 4s' } },
      (o) => o.config.terminationDrainDurationMs,
      4_000,
    ],
    ['MINIMUM_DRAIN_DURATION', { env: { MINIMUM_DRAIN_DURATION: '9s' } }, (o) => o.minimumDrainMs, 9_000],
    ['TRUST_DOMAIN', { env: { TRUST_DOMAIN: 'td' } }, (o) => o.identity.trustDomain, 'td'],
    [
      'ISTIO_ENVOY_ENABLE_CORE_DUMP, ENVOY_SKIP_DEPRECATED_LOGS',
      { env: { ISTIO_ENVOY_ENABLE_CORE_DUMP: 'true', ENVOY_SKIP_DEPRECATED_LOGS: 'false' } },
      (o) => [o.enableCoreDump, o.skipDeprecatedLogs],
      [true, false],
    ],
    ['ENVOY_SKIP_DEPRECATED_LOGS by default', {}, (o) => [o.enableCoreDump, o.skipDeprecatedLogs], [false, true]],
  ])('sets an option by %s (agent §1.3)', (_, sources, selectFields, expected) => {
    expect(selectFields(optionsOf(sources))).toEqual(expected);
  });

  const plane = { PROXY_CONFIG: 'discoveryAddress: "a.b:1"' };
  const dns = { ISTIO_META_DNS_CAPTURE: 'true' };

  test.each<Row>([
    ['CA_ADDR', { env: { CA_ADDR: 'ca:1' } }, (o) => o.identity.authorityAddress, 'ca:1'],
    ['CA_ADDR by default', { env: plane }, (o) => o.identity.authorityAddress, 'a.b:1'],
    ['CA_PROVIDER', { env: { CA_PROVIDER: 'GoogleCA' } }, (o) => o.identity.settings.source, 'nowhere'],
    ['CA_PROVIDER by default', {}, (o) => o.identity.settings.source, 'authority'],
    [
      'JWT_POLICY without a token as no certificate',
      { env: { JWT_POLICY: 'none' } },
      (o) => o.identity.settings.source,
      'nowhere',
    ],
    [
      'JWT_POLICY first-party-jwt',
      { env: { JWT_POLICY: 'first-party-jwt' } },
      (o) => o.identity.settings.reason,
      'the token /var/run/secrets/kubernetes.io/serviceaccount/token',
    ],
    ['SECRET_TTL', { env: { SECRET_TTL: '90m' } }, (o) => o.identity.lifetimeSeconds, 5_400],
    ['SECRET_TTL by default', {}, (o) => o.identity.lifetimeSeconds, 86_400],
    [
      'SECRET_GRACE_PERIOD_RATIO, SECRET_GRACE_PERIOD_RATIO_JITTER',
      { env: { SECRET_GRACE_PERIOD_RATIO: '0.2', SECRET_GRACE_PERIOD_RATIO_JITTER: '0' } },
      (o) => o.identity.settings.grace,
      { ratio: 0.2, jitter: 0 },
    ],
    [
      'WORKLOAD_RSA_KEY_SIZE',
      { env: { WORKLOAD_RSA_KEY_SIZE: '4096' } },
      (o) => o.identity.key,
      { type: 'rsa', bits: 4096 },
    ],
    [
      'ECC_SIGNATURE_ALGORITHM, ECC_CURVE',
      { env: { ECC_SIGNATURE_ALGORITHM: 'ECDSA', ECC_CURVE: 'P256', WORKLOAD_RSA_KEY_SIZE: '2048' } },
      (o) => o.identity.key,
      { type: 'ec' },
    ],
    ['FILE_MOUNTED_CERTS', { env: { FILE_MOUNTED_CERTS: 'true' } }, (o) => o.identity.settings.source, 'files'],
    [
      'PROV_CERT',
      { env: { PROV_CERT: '/p', JWT_POLICY: 'none' } },
      (o) => o.identity.settings.reason,
      'the certificate in /p',
    ],
    [
      'OUTPUT_CERTS',
      { env: { OUTPUT_CERTS: '/o' } },
      (o) => [o.identity.outputDirectory, o.identity.settings.writesOutput],
      ['/o', true],
    ],
    [
      'DNS_PROXY_ADDR',
      { env: { ...dns, DNS_PROXY_ADDR: '127.0.0.9:1053' } },
      (o) => [o.dns?.addresses, o.dns?.port],
      [['127.0.0.9'], 1053],
    ],
    [
      'DNS_FORWARD_PARALLEL, DNS_FORWARD_TIMEOUT',
      { env: { ...dns, DNS_FORWARD_PARALLEL: 'true', DNS_FORWARD_TIMEOUT: '2s' } },
      (o) => [o.dns?.parallel, o.dns?.timeoutMs],
      [true, 2_000],
    ],
    ['DISABLE_ENVOY', { env: { DISABLE_ENVOY: 'true' } }, (o) => o.runsEnvoy, false],
    ['DISABLE_ENVOY by default', {}, (o) => o.runsEnvoy, true],
    [
      'ISTIO_KUBE_APP_PROBERS',
      { env: { ISTIO_KUBE_APP_PROBERS: '{"/app-health/web/livez": {"tcpSocket": {"port": 80}}}' } },
      (o) => [...o.status.probes.keys()],
      ['/app-health/web/livez'],
    ],
    [
      'ISTIO_PROMETHEUS_ANNOTATIONS',
      { env: { ISTIO_PROMETHEUS_ANNOTATIONS: '{"scrape": "true", "path": "/m", "port": "81"}' } },
      (o) => o.status.applicationMetrics,
      [{ path: '/m', port: 81 }],
    ],
    [
      'ISTIO_ENABLE_HTTP2_PROBING',
      { env: { ISTIO_ENABLE_HTTP2_PROBING: 'false' } },
      (o) => o.status.http2Probes,
      false,
    ],
    [
      'REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION',
      { env: { REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: 'true' } },
      (o) => o.status.destination,
      '127.0.0.1',
    ],
    [
      'ENABLE_PROBE_KEEPALIVE_CONNECTIONS',
      { env: { ENABLE_PROBE_KEEPALIVE_CONNECTIONS: 'true' } },
      (o) => o.status.keepsProbeConnections,
      true,
    ],
  ])('applies %s (agent §1.3)', (_, sources, selectFields, expected) => {
    expect(selectFields(optionsOf(sources))).toEqual(expected);
  });

  test.each<[row: string, service: 'xds' | 'ca', env: NodeJS.ProcessEnv, file: string]>([
    ['XDS_ROOT_CA', 'xds', { XDS_ROOT_CA: '/x', CA_ROOT_CA: '/c' }, '/x'],
    ['CA_ROOT_CA', 'ca', { XDS_ROOT_CA: '/x', CA_ROOT_CA: '/c' }, '/c'],
    ['PILOT_CERT_PROVIDER custom', 'ca', { PILOT_CERT_PROVIDER: 'custom' }, './etc/certs/root-cert.pem'],
    [
      'PILOT_CERT_PROVIDER kubernetes',
      'ca',
      { PILOT_CERT_PROVIDER: 'kubernetes' },
      './var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
    ],
    ['PILOT_CERT_PROVIDER by default', 'xds', {}, './var/run/secrets/istio/root-cert.pem'],
  ])('selects the root file by %s (agent §1.3)', (_, service, env, file) => {
    expect(controlPlaneRootFile(service, { env }, () => false)).toBe(file);
  });

  test('adds XDS_HEADER_ and ISTIO_META_CLUSTER_ID to the headers of requests to the control plane', () => {
    const { headers } = xdsHeaders({ XDS_HEADER_X: 'y', ISTIO_META_CLUSTER_ID: 'c' });
    expect(headers).toEqual({ x: 'y', clusterid: 'c' });
  });

  test('passes --skip-deprecated-logs and --enable-core-dump to Envoy (agent §4.1)', () => {
    const flags = {
      drainMs: 1,
      parentShutdownMs: 1,
      ipVersion: 'v4',
      logLevel: 'info',
      componentLogLevel: '',
      concurrency: 1,
      configOverride: '',
    } as const;
    const run = { configFile: 'f', epoch: 0, baseId: 1 };
    expect(envoyArguments(flags, run)).not.toContain('--skip-deprecated-logs');
    expect(envoyArguments({ ...flags, skipDeprecatedLogs: true, enableCoreDump: true }, run)).toEqual(
      expect.arrayContaining(['--skip-deprecated-logs', '--enable-core-dump']),
    );
  });
});

describe('merge of proxy configurations (agent §1.5)', () => {
  const yaml = `discoveryAddress: foo:123
drainDuration: 1s
proxyMetadata: {SOME: setting}
controlPlaneAuthPolicy: NONE
`;
  const annotationLine = (annotation: string, text: string): string => `${annotation}=${JSON.stringify(text)}\n`;
  const mesh = (text: string): string => `defaultConfig:\n${text.replace(/^/gm, '  ')}`;

  test('uses defaults if there are no sources', () => {
    expect(optionsOf({}).config).toMatchObject({
      configPath: './etc/istio/proxy',
      binaryPath: '/usr/local/bin/envoy',
      serviceCluster: 'istio-proxy',
      drainDurationMs: 45_000,
      parentShutdownDurationMs: 60_000,
      terminationDrainDurationMs: 5_000,
      discoveryAddress: 'istiod.istio-system.svc:15012',
      controlPlaneAuthPolicy: 'MUTUAL_TLS',
      proxyAdminPort: 15_000,
      statusPort: 15_020,
      statNameLength: 189,
    });
    expect(optionsOf({}).config).not.toHaveProperty('tracing');
  });

  test.each<[string, Sources]>([
    ['annotation', { files: { 'etc/istio/pod/annotations': annotationLine('proxy.istio.io/config', yaml) } }],
    ['mesh file', { files: { 'etc/istio/config/mesh': mesh(yaml) } }],
    ['environment', { env: { PROXY_CONFIG: yaml } }],
    [
      'environment with protobuf field names',
      {
        env: {
          PROXY_CONFIG: yaml
            .replace('discoveryAddress', 'discovery_address')
            .replace('drainDuration', 'drain_duration'),
        },
      },
    ],
    ['--proxyConfig', { flags: { proxyConfig: '<folder>/p' }, files: { p: yaml } }],
  ])('uses the source %s (agent §1.5)', (_, sources) => {
    expect(optionsOf(sources).config).toMatchObject({
      discoveryAddress: 'foo:123',
      drainDurationMs: 1_000,
      proxyMetadata: { SOME: 'setting' },
      controlPlaneAuthPolicy: 'NONE',
    });
  });

  test('prefers the annotation to the other sources, merges metadata and replaces lists', () => {
    const files = {
      'etc/istio/config/mesh': mesh(
        `${yaml}extraStatTags: [a]\nproxyStatsMatcher: {inclusionPrefixes: [a], inclusionSuffixes: [b], inclusionRegexps: [c]}\n`,
      ),
      'etc/istio/pod/annotations': annotationLine(
        'proxy.istio.io/config',
        'discoveryAddress: annotation:123\nproxyMetadata: {ANNOTATION: something}\ndrainDuration: 5s\nextraStatTags: [b]\nproxyStatsMatcher: {inclusionRegexps: [f]}',
      ),
    };
    const env = { PROXY_CONFIG: 'discoveryAddress: environment:123\nproxyStatsMatcher: {inclusionSuffixes: [e]}' };
    expect(optionsOf({ files, env }).config).toMatchObject({
      discoveryAddress: 'annotation:123',
      proxyMetadata: { SOME: 'setting', ANNOTATION: 'something' },
      drainDurationMs: 5_000,
      controlPlaneAuthPolicy: 'NONE',
      extraStatTags: ['b'],
      proxyStatsMatcher: { inclusionPrefixes: ['a'], inclusionSuffixes: ['e'], inclusionRegexps: ['f'] },
    });
  });

  test('prefers flags to configurations, and annotations of single values to flags', () => {
    const annotations =
      annotationLine('sidecar.istio.io/discoveryAddress', 'last:1') +
      annotationLine('status.sidecar.istio.io/port', '7');
    const options = optionsOf({
      flags: { discoveryAddress: 'flag:1', statusPort: '6', proxyAdminPort: '5' },
      env: { PROXY_CONFIG: 'proxyAdminPort: 4' },
      files: { 'etc/istio/pod/annotations': annotations },
    });
    expect(options.config).toMatchObject({ discoveryAddress: 'last:1', statusPort: 7, proxyAdminPort: 5 });
  });

  test.each<[string, Sources, ErrorFields]>([
    [
      'an invalid value in the mesh file',
      { files: { 'etc/istio/config/mesh': 'a: 1\ndefaultConfig:\n  statusPort: x\n' } },
      { code: 'FIELD_TYPE_INVALID', line: 3, got: '"x"' },
    ],
    [
      'an invalid value in the environment',
      { env: { PROXY_CONFIG: '\n\ntracing: {zipkin: {address: 1}}' } },
      { code: 'FIELD_TYPE_INVALID', path: 'PROXY_CONFIG: tracing.zipkin.address', line: 3, got: '1' },
    ],
    [
      'invalid YAML in the annotation',
      { files: { 'etc/istio/pod/annotations': annotationLine('proxy.istio.io/config', 'a: [') } },
      { path: 'annotation proxy.istio.io/config', line: 1 },
    ],
    [
      'a number that is NaN',
      { env: { PROXY_CONFIG: 'readinessProbe: {a: [1, .nan]}' } },
      { code: 'FIELD_OUT_OF_RANGE', path: 'PROXY_CONFIG: readinessProbe.a[1]', line: 1, got: 'NaN' },
    ],
    [
      'invalid UTF-16',
      { env: { PROXY_CONFIG: 'image: {imageType: "\\ud800"}' } },
      { code: 'FIELD_FORMAT_INVALID', path: 'PROXY_CONFIG: image.imageType', line: 1 },
    ],
    [
      'too deep nesting for Envoy',
      { env: { PROXY_CONFIG: `image: {a: ${'['.repeat(60)}${']'.repeat(60)}}` } },
      { code: 'FIELD_TOO_LARGE', expected: 'at most 50 levels of nesting', line: 1 },
    ],
    ['an alias of itself', { env: { PROXY_CONFIG: 'image: &a {b: *a}' } }, { code: 'YAML_INVALID', line: 1 }],
    [
      'a source of 10 MB',
      { flags: { proxyConfig: '<folder>/p' }, files: { p: `image: {a: ${'x'.repeat(10_000_000)}}` } },
      { expected: 'at most 1048576 bytes' },
    ],
    ['a list for a map', { env: { PROXY_CONFIG: '- a' } }, { code: 'FIELD_TYPE_INVALID', line: 1, got: 'a list' }],
  ])('reports errors with source, line and field: %s (agent §1.5)', (_, sources, fields) => {
    const expectedError = {
      code: 'CONFIG_INVALID',
      details: expect.arrayContaining([expect.objectContaining(fields)]),
    };
    expect(() => optionsOf(sources)).toThrow(expect.objectContaining(expectedError));
  });

  test('treats names of JavaScript properties as ordinary keys', () => {
    const env = { PROXY_CONFIG: 'proxyMetadata: {__proto__: a, constructor: b, ISTIO_META___proto__: c}' };
    const files = {
      'etc/istio/pod/annotations': annotationLine(
        'proxy.istio.io/config',
        'proxyMetadata: {toString: d, __proto__: e}',
      ),
    };
    const { bootstrap } = generateBootstrap({ env, files });
    expect(Object.entries(bootstrap.node.metadata.PROXY_CONFIG.proxyMetadata)).toEqual([
      ['__proto__', 'e'],
      ['constructor', 'b'],
      ['ISTIO_META___proto__', 'c'],
      ['toString', 'd'],
    ]);
    expect(Object.getOwnPropertyDescriptor(bootstrap.node.metadata, '__proto__')?.value).toBe('c');
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });
});

test("uses the host of the control plane's address as its SAN, istiod for localhost, and none without MUTUAL_TLS (agent §1.6)", () => {
  const sanOf = (config: string): unknown =>
    generateBootstrap({ env: { PROXY_CONFIG: config } }).bootstrap.node.metadata.PILOT_SAN;
  expect(sanOf('discoveryAddress: pilot.x:15012')).toEqual(['pilot.x']);
  expect(sanOf('discoveryAddress: localhost:15012')).toEqual(['istiod.istio-system.svc']);
  expect(sanOf('controlPlaneAuthPolicy: NONE')).toBeUndefined();
});
