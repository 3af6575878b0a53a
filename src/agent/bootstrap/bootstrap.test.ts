import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { envoyBinary, temporaryFolder, testFlags } from '../../../test/fixtures/real-envoy.ts';
import { defaultProxyConfig, type ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { validationArguments } from '../envoy/envoy-args.ts';
import { localAddresses } from '../options/addresses.ts';
import { type BootstrapFacts, buildBootstrap } from './bootstrap.ts';
import { buildNode } from './node-metadata.ts';

function facts(changes: Partial<BootstrapFacts> = {}, configChanges: Partial<ProxyConfig> = {}): BootstrapFacts {
  const addresses = ['10.1.2.3'];
  const config = { ...defaultProxyConfig, discoveryAddress: '127.0.0.1:15010', ...configChanges };
  const { node } = buildNode({
    role: 'router',
    workloadId: 'gateway.demo',
    domain: 'demo.svc.cluster.local',
    addresses,
    config,
    env: {},
    podLabels: { app: 'gateway', 'istio-locality': 'a/b/c' },
    podAnnotations: {},
    envoyStatusPort: 15021,
    envoyPrometheusPort: 15090,
    hasSecrets: false,
    agentVersion: '0.9.1',
    nodeId: undefined,
    stsPort: 0,
    pilotSans: undefined,
    platformMetadata: undefined,
    hasCredentialServer: false,
  });
  return {
    node,
    config,
    addresses,
    local: localAddresses(addresses),
    hostIp: '',
    annotations: {},
    delta: false,
    connectTimeoutMs: 1_000,
    xdsSocket: './etc/istio/proxy/XDS',
    xdsHeaders: { 'x-chartpilot-envoy': '0@7' },
    secretSocket: './var/run/secrets/workload-spiffe-uds/socket',
    hasSecrets: false,
    dualStack: false,
    exitOnZeroActiveConnections: false,
    envoyStatusPort: 15021,
    envoyPrometheusPort: 15090,
    envoySecureMetricsPort: 0,
    envoySecureMergedMetricsPort: 0,
    ...changes,
  };
}

function build(facts: BootstrapFacts): object {
  const [errors, warnings] = [new OptionErrors(), []];
  const bootstrap = buildBootstrap(facts, { errors, warnings });
  errors.throwIfAny();
  return bootstrap;
}

interface Shape {
  dynamic_resources: { ads_config: { api_type: string; grpc_services: { initial_metadata: object[] }[] } };
  static_resources: {
    clusters: { name: string; type: string; transport_socket?: unknown; dns_lookup_family?: string }[];
    listeners: { address: { socket_address: { port_value: number } } }[];
  };
  stats_config: {
    stats_tags: { tag_name: string; regex: string }[];
    stats_matcher: { inclusion_list: { patterns: Record<string, unknown>[] } };
  };
  layered_runtime: { layers: { static_layer?: Record<string, string> }[] };
}

const built = (changes?: Partial<BootstrapFacts>, config?: Partial<ProxyConfig>): Shape =>
  build(facts(changes, config)) as unknown as Shape;

describe('generated bootstrap', () => {
  test.each([
    ['plaintext, state of the world', {}, {}],
    ['delta, no listeners of its own', { delta: true, envoyStatusPort: 0, envoyPrometheusPort: 0 }, {}],
    [
      'extra tags, runtime flags, statsd',
      { outlierLogPath: '/dev/null' },
      {
        discoveryAddress: 'istiod.istio-system.svc:15012',
        extraStatTags: ['my_tag'],
        runtimeValues: { 're2.max_program_size.error_level': '', 'overload.example': '1' },
        proxyStatsMatcher: { inclusionRegexps: ['.*{pod_ip}.*'] },
        statsdUdpAddress: '127.0.0.1:8125',
      },
    ],
    [
      'services that Envoy reports to',
      { hostIp: '10.9.9.9' },
      {
        tracing: { zipkin: { address: 'zipkin.istio-system:9411' } },
        envoyAccessLogService: { address: 'logs.test:9000', tcpKeepalive: { probes: 3, time: '10s', interval: '0s' } },
        envoyMetricsService: { address: '$(HOST_IP):9001', tlsSettings: { mode: 'SIMPLE', caCertificates: '<root>' } },
      },
    ],
    ['spans for a Datadog agent', {}, { tracing: { datadog: { address: '127.0.0.1:8126' } } }],
    [
      'IPv6',
      { addresses: ['2001:db8::1'], local: localAddresses(['2001:db8::1']) },
      { discoveryAddress: '[::1]:15010' },
    ],
  ] as [string, Partial<BootstrapFacts>, Partial<ProxyConfig>][])(
    'is accepted by Envoy: %s',
    async (_, changes, config) => {
      using folder = temporaryFolder();
      const rootFile = join(folder.path, 'root.pem');
      writeFileSync(rootFile, createAuthority().certificate);
      const bootstrap = JSON.stringify(build(facts(changes, config))).replaceAll('<root>', rootFile);
      const file = join(folder.path, 'bootstrap.json');
      writeFileSync(file, bootstrap);
      const { exitCode, all } = await execa(envoyBinary(), validationArguments(testFlags, file), {
        reject: false,
        all: true,
      });
      expect(`${exitCode} ${all}`).toBe(`0 configuration '${file}' OK`);
    },
  );
});

test('has listeners and their clusters only for configured ports', () => {
  const ports = (shape: Shape): number[] =>
    shape.static_resources.listeners.map((listener) => listener.address.socket_address.port_value);
  const names = (shape: Shape): string[] => shape.static_resources.clusters.map(({ name }) => name);
  expect(ports(built())).toEqual([15090, 15021]);
  expect(names(built())).toEqual(['prometheus_stats', 'agent', 'sds-grpc', 'xds-grpc']);
  const none = built({ envoyStatusPort: 0, envoyPrometheusPort: 0 });
  expect(ports(none)).toEqual([]);
  expect(names(none)).toEqual(['sds-grpc', 'xds-grpc']);
});

test('has no readiness listener if there is no status server', () => {
  expect(built({}, { statusPort: 0 }).static_resources.clusters.map(({ name }) => name)).not.toContain('agent');
});

test("connects Envoy to the agent's xDS socket, with a header that identifies the Envoy", () => {
  const shape = built({}, { discoveryAddress: 'istiod:15012' });
  const controlPlane = shape.static_resources.clusters.at(-1);
  expect(controlPlane).toMatchObject({ type: 'STATIC' });
  expect(JSON.stringify(controlPlane)).toContain('{"pipe":{"path":"./etc/istio/proxy/XDS"}}');
  expect(JSON.stringify(controlPlane)).not.toContain('istiod');
  expect(shape.dynamic_resources.ads_config.grpc_services[0]!.initial_metadata).toEqual([
    { key: 'x-chartpilot-envoy', value: '0@7' },
  ]);
});

test('uses incremental xDS with --delta', () => {
  expect(built().dynamic_resources.ads_config.api_type).toBe('GRPC');
  expect(built({ delta: true }).dynamic_resources.ads_config.api_type).toBe('DELTA_GRPC');
});

test('always includes the statistics that draining and readiness require', () => {
  const { patterns } = built({ exitOnZeroActiveConnections: true }).stats_config.stats_matcher.inclusion_list;
  for (const suffix of ['downstream_rq_active', 'downstream_cx_active']) expect(patterns).toContainEqual({ suffix });
  expect(patterns).toContainEqual({ prefix: 'control_plane' });
});

test("replaces the mesh's inclusion list by that of an annotation, and keeps the required statistics", () => {
  const annotations = { 'sidecar.istio.io/statsInclusionPrefixes': 'mine, yours' };
  const config = { proxyStatsMatcher: { inclusionPrefixes: ['mesh'], inclusionRegexps: ['x{pod_ip}'] } };
  const { patterns } = built({ annotations, addresses: ['a', 'b'] }, config).stats_config.stats_matcher.inclusion_list;
  expect(patterns).toContainEqual({ prefix: 'mine' });
  expect(patterns).toContainEqual({ prefix: 'yours' });
  expect(patterns).not.toContainEqual({ prefix: 'mesh' });
  expect(patterns).toContainEqual({ prefix: 'cluster_manager' });
  expect(patterns).toContainEqual({ safe_regex: { regex: 'xa' } });
  expect(patterns).toContainEqual({ safe_regex: { regex: 'xb' } });
});

test('contains each duplicate extra tag once', () => {
  const annotations = { 'sidecar.istio.io/extraStatTags': 'a,b' };
  const tags = built({ annotations }, { extraStatTags: ['a'] }).stats_config.stats_tags.map((tag) => tag.tag_name);
  expect(tags.filter((name) => name === 'a')).toHaveLength(1);
  expect(tags).toContain('b');
});

test('omits a default runtime flag if its value is set to empty', () => {
  const { layers } = built({}, { runtimeValues: { 're2.max_program_size.error_level': '', x: '1' } }).layered_runtime;
  expect(layers[0]!.static_layer).toMatchObject({ x: '1' });
  expect(layers[0]!.static_layer).not.toHaveProperty(['re2.max_program_size.error_level']);
});

test('uses the same admin port everywhere, also for the spare base ID', () => {
  const bootstrap = build(facts({}, { proxyAdminPort: 15_005 }));
  const occurrences = JSON.stringify(bootstrap).match(/15005/g);
  // The port is in the admin interface, the statistics cluster and the node metadata.
  expect(occurrences).toHaveLength(3);
  expect(JSON.stringify(bootstrap)).not.toContain('15000');
});
