import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { codedProblem } from '../../../test/fixtures/coded-error.ts';
import { givenMeshConfig } from '../../../test/fixtures/given-mesh.ts';
import { problemText } from '../config/problem.ts';
import { readMeshConfig } from './mesh-config.decode.ts';
import { defaultMeshConfig } from './mesh-config.ts';
import { readMeshNetworks } from './mesh-networks.ts';

const authority = createAuthority();
const root = authority.certificate;
const leaf = authority.issue(['a.example']).certificate;

function errorsOf(yaml: string): string[] {
  const read = readMeshConfig('mesh.yaml', yaml);
  return E.isLeft(read) ? read.left.map(codedProblem) : [];
}

function fieldsOf(yaml: string): (string | undefined)[] {
  const read = readMeshConfig('mesh.yaml', yaml);
  return E.isLeft(read) ? read.left.map(({ field }) => field) : [];
}

describe('the mesh configuration', () => {
  it('applies the defaults for an empty file', () => {
    expect(givenMeshConfig('')).toEqual(defaultMeshConfig);
    expect(givenMeshConfig('# only a comment\n')).toEqual(defaultMeshConfig);
    expect(defaultMeshConfig).toMatchObject({
      proxyListenPort: 15001,
      connectTimeoutMs: 10_000,
      trustDomain: 'cluster.local',
      outboundTrafficPolicy: { mode: 'ALLOW_ANY' },
      rootNamespace: 'istio-system',
      dnsRefreshRateMs: 60_000,
    });
  });

  it('overrides the base field by field, and merges fields that are defined to merge', () => {
    const base = givenMeshConfig(`
trustDomainAliases: [b, c]
defaultProviders: {metrics: [prometheus]}
extensionProviders: [{name: mine, zipkin: {service: z.example.com, port: 1}}]
defaultConfig: {proxyMetadata: {A: "1", B: "1"}, discoveryAddress: "a:15010"}
`);
    const read = readMeshConfig(
      'mesh.yaml',
      `
connectTimeout: 1s
trustDomainAliases: [a, b]
defaultProviders: {tracing: [mine]}
extensionProviders: [{name: mine, zipkin: {service: z.example.com, port: 2}}, {name: other, prometheus: {}}]
defaultConfig: {proxyMetadata: {B: "2"}}
localityLbSetting: {failoverPriority: [x]}
`,
      base,
    );
    expect(read).toMatchObject(
      E.right({
        warnings: [],
        mesh: {
          connectTimeoutMs: 1000,
          trustDomainAliases: ['a', 'b', 'c'],
          defaultProviders: { metrics: ['prometheus'], tracing: ['mine'] },
          defaultConfig: { proxyMetadata: { A: '1', B: '2' }, discoveryAddress: 'a:15010' },
          localityLbSetting: { enabled: true, failoverPriority: ['x'] },
        },
      }),
    );
    const providers = E.isRight(read) ? read.right.mesh.extensionProviders : [];
    expect(providers.map(({ name }) => name)).toEqual(['prometheus', 'stackdriver', 'envoy', 'mine', 'other']);
    expect(providers[3]).toEqual({ name: 'mine', zipkin: { service: 'z.example.com', port: 2 } });
  });

  it('is accepted with warnings for unknown and retired fields', () => {
    const read = readMeshConfig('mesh.yaml', 'connectTimout: 1s\nmixerCheckServer: x\nrootNamespace: root\n');
    expect(E.isRight(read) && read.right.mesh.rootNamespace).toBe('root');
    expect(E.isRight(read) && read.right.warnings.map(codedProblem)).toEqual([
      'mesh.yaml:1:1: warning: connectTimout: FIELD_UNKNOWN near connectTimeout',
      'mesh.yaml:2:1: warning: mixerCheckServer: FIELD_WITHOUT_EFFECT',
    ]);
  });

  it('is rejected with every error and its line', () => {
    const yaml = `
proxyListenPort: 70000
connectTimeout: 2h
trustDomain: "bad domain"
extensionProviders: [{name: a}, {name: a}, {}]
outboundTrafficPolicy: {mode: REGISTRY}
defaultConfig: {proxyAdminPort: x}
`;
    expect(errorsOf(yaml)).toEqual([
      'mesh.yaml:2:1: error: proxyListenPort: FIELD_OUT_OF_RANGE (from 1 to 65535) got 70000',
      'mesh.yaml:3:1: error: connectTimeout: FIELD_OUT_OF_RANGE (at most 1h) got "7200000ms"',
      'mesh.yaml:4:1: error: trustDomain: FIELD_FORMAT_INVALID got "bad domain"',
      'mesh.yaml:6:25: error: outboundTrafficPolicy.mode: FIELD_VALUE_UNKNOWN got "REGISTRY"',
      'mesh.yaml:5:44: error: extensionProviders[2].name: FIELD_EMPTY',
      expect.stringContaining('mesh.yaml:7:17: error: defaultConfig.proxyAdminPort'),
    ]);
  });

  /** Text and path of its error; valid texts have no path. */
  it.each([
    ['proxyListenPort: 0', 'proxyListenPort'],
    ['proxyInboundListenPort: 65536', 'proxyInboundListenPort'],
    ['proxyHttpPort: 0', ''],
    ['connectTimeout: 1ms', ''],
    ['connectTimeout: 0s', 'connectTimeout'],
    ['connectTimeout: 1h', ''],
    ['connectTimeout: 1h1ms', 'connectTimeout'],
    ['connectTimeout: 1500us', 'connectTimeout'],
    ['protocolDetectionTimeout: 0s', ''],
    ['protocolDetectionTimeout: 100ms', ''],
    ['protocolDetectionTimeout: 100us', 'protocolDetectionTimeout'],
    ['defaultConfig: {drainDuration: 0s}', 'defaultConfig.drainDuration'],
    ['defaultConfig: {drainDuration: 1500ms}', 'defaultConfig.drainDuration'],
    ['defaultConfig: {drainDuration: 1h}', ''],
    ['defaultConfig: {drainDuration: 1h1s}', 'defaultConfig.drainDuration'],
    ['defaultConfig: {discoveryAddress: istiod}', 'defaultConfig.discoveryAddress'],
    ['defaultConfig: {configPath: ""}', 'defaultConfig.configPath'],
    ['defaultConfig: {binaryPath: ""}', 'defaultConfig.binaryPath'],
    ['defaultConfig: {serviceCluster: ""}', 'defaultConfig.serviceCluster'],
    ['defaultConfig: {statsdUdpAddress: statsd}', 'defaultConfig.statsdUdpAddress'],
    ['defaultConfig: {envoyMetricsService: {address: "metrics:15000"}}', ''],
    ['defaultConfig: {envoyMetricsService: {address: metrics}}', 'defaultConfig.envoyMetricsService.address'],
    ['defaultConfig: {zipkinAddress: zipkin}', 'defaultConfig.zipkinAddress'],
    ['defaultConfig: {tracing: {zipkin: {address: zipkin}}}', 'defaultConfig.tracing.zipkin.address'],
    ['defaultConfig: {tracing: {lightstep: {address: "a:0"}}}', 'defaultConfig.tracing.lightstep.address'],
    ['defaultConfig: {tracing: {datadog: {address: "$(HOST_IP):8126"}}}', ''],
    ['defaultConfig: {tracing: {datadog: {address: "$(HOST_IP)"}}}', 'defaultConfig.tracing.datadog.address'],
    ['localityLbSetting: {distribute: [{from: a, to: {a: 90, b: 10}}]}', ''],
    ['localityLbSetting: {distribute: [{from: a, to: {a: 90}}]}', 'localityLbSetting.distribute[0].to'],
    ['localityLbSetting: {distribute: [{from: a, to: {a: 0, b: 100}}]}', 'localityLbSetting.distribute[0].to.a'],
    ['localityLbSetting: {distribute: [{from: a, to: {b: 100}}], failoverPriority: [x]}', 'localityLbSetting'],
    ['localityLbSetting: {failover: [{from: a, to: b}], failoverPriority: [x]}', ''],
    ['localityLbSetting: {failover: [{from: a, to: a}]}', 'localityLbSetting.failover[0]'],
    [
      'localityLbSetting: {distribute: [{from: a/b, to: {c: 100}}, {from: a/*, to: {c: 100}}]}',
      'localityLbSetting.distribute',
    ],
    ['trustDomain: a.b-c.d', ''],
    ['trustDomain: a..b', 'trustDomain'],
    [`trustDomain: ${'a.'.repeat(128)}b`, 'trustDomain'],
    ['trustDomainAliases: [-a]', 'trustDomainAliases[0]'],
    [`caCertificates: [${JSON.stringify({ pem: root })}, {spiffeBundleUrl: "https://a", trustDomains: [b]}]`, ''],
    [`caCertificates: [${JSON.stringify({ pem: root.slice(0, -80) })}]`, 'caCertificates[0].pem'],
    [`caCertificates: [${JSON.stringify({ pem: leaf })}]`, 'caCertificates[0].pem'],
    ['caCertificates: [{pem: ""}]', 'caCertificates[0].pem'],
    ['certificates: [{secretName: dns.web, dnsNames: [a.svc, "*.b"]}]', ''],
    ['certificates: [{secretName: Web, dnsNames: [a]}]', 'certificates[0].secretName'],
    ['certificates: [{secretName: istio-ca-secret, dnsNames: [a]}]', 'certificates[0].secretName'],
    ['certificates: [{secretName: a, dnsNames: [b]}, {secretName: a, dnsNames: [c]}]', 'certificates[1].secretName'],
    ['certificates: [{secretName: web, dnsNames: []}]', 'certificates[0].dnsNames'],
    ['certificates: [{secretName: web}]', 'certificates[0].dnsNames'],
    ['certificates: [{secretName: web, dnsNames: ["a b"]}]', 'certificates[0].dnsNames[0]'],
    ['caCertificates: [{}]', 'caCertificates[0]'],
    [`caCertificates: [{spiffeBundleUrl: "https://a", pem: ${JSON.stringify(root)}}]`, 'caCertificates[0]'],
    [`caCertificates: [${JSON.stringify({ pem: root, trustDomains: ['a..b'] })}]`, 'caCertificates[0].trustDomains[0]'],
    ['tlsDefaults: {minProtocolVersion: TLSV1_3, cipherSuites: [AES128-GCM-SHA256], ecdhCurves: [X25519]}', ''],
    ['tlsDefaults: {cipherSuites: [RC4]}', 'tlsDefaults.cipherSuites[0]'],
    ['meshMTLS: {minProtocolVersion: TLSV1_1}', 'meshMTLS.minProtocolVersion'],
    ['extensionProviders: [{prometheus: {}}]', 'extensionProviders[0].name'],
    ['extensionProviders: [{name: a, prometheus: {}}, {name: a, stackdriver: {}}]', 'extensionProviders[1].name'],
  ])('is validated: %s', (yaml, path) => {
    expect([...new Set(fieldsOf(yaml))]).toEqual(path === '' ? [] : [path]);
  });

  it('is accepted without invalid providers, which are reported', () => {
    const yaml = `extensionProviders:
  - {name: none}
  - {name: two, prometheus: {}, stackdriver: {}}
  - {name: unknown, jaeger: {}}
  - {name: authz, envoyExtAuthzGrpc: {service: authz.example.com}}
  - {name: als, envoyHttpAls: {service: als.example.com, port: 70000}}
  - {name: good, zipkin: {service: zipkin.example.com, port: 9411}}
rootNamespace: root
`;
    const read = readMeshConfig('mesh.yaml', yaml);
    if (E.isLeft(read)) throw new Error(read.left.map(problemText).join());
    expect(read.right.mesh.rootNamespace).toBe('root');
    expect(read.right.mesh.extensionProviders.map(({ name }) => name)).toEqual([
      'prometheus',
      'stackdriver',
      'envoy',
      'good',
    ]);
    expect(read.right.warnings.map(({ line, field }) => `${line}: ${field}`)).toEqual([
      '3: extensionProviders[1].stackdriver',
      '2: extensionProviders[0]',
      '3: extensionProviders[1]',
      '4: extensionProviders[2].jaeger',
      '5: extensionProviders[3].envoyExtAuthzGrpc.port',
      '6: extensionProviders[4].envoyHttpAls.port',
    ]);
  });

  it('has warnings for unknown fields and fields without effect in proxy messages and providers', () => {
    const read = readMeshConfig(
      'mesh.yaml',
      `meshMTLS: {ecdhCurves: [P-256]}
extensionProviders:
  - {name: z, zipkin: {service: a.test, port: 80, traceContextOption: USE_B3_WITH_W3C_PROPAGATION, later: 1}}
  - {name: o, opentelemetry: {service: a.test, port: 80, http: {path: /a, headers: [{name: a, envName: B}]}}}
  - {name: a, envoyExtAuthzGrpc: {service: a.test, port: 80, later: 1}}
  - {name: l, lightstep: {service: a.test, port: 80, accessToken: x}}
defaultConfig:
  proxyHeaders: {preserveHttp1HeaderCase: true, xForwardedHost: {enabled: true}, later: {}}
  tracing: {stackdriver: {}, sampling: 5}
  discovery_address: a.test:15012
  private_key_provider: {cryptomb: {}}
`,
    );
    if (E.isLeft(read)) throw new Error(read.left.map(problemText).join());
    const warningCodes = read.right.warnings.map(({ field, code = 'unknown' }) => `${field} ${code}`).sort();
    expect(warningCodes).toEqual([
      'defaultConfig.privateKeyProvider FIELD_WITHOUT_EFFECT',
      'defaultConfig.proxyHeaders.later FIELD_UNKNOWN',
      'defaultConfig.proxyHeaders.preserveHttp1HeaderCase FIELD_WITHOUT_EFFECT',
      'defaultConfig.proxyHeaders.xForwardedHost FIELD_WITHOUT_EFFECT',
      'defaultConfig.tracing.stackdriver FIELD_WITHOUT_EFFECT',
      'extensionProviders[0].zipkin.later FIELD_UNKNOWN',
      'extensionProviders[0].zipkin.traceContextOption FIELD_WITHOUT_EFFECT',
      'extensionProviders[1].opentelemetry.http.headers[0].envName FIELD_WITHOUT_EFFECT',
      'extensionProviders[2].envoyExtAuthzGrpc.later FIELD_UNKNOWN',
      'extensionProviders[3].lightstep FIELD_WITHOUT_EFFECT',
      'meshMTLS.ecdhCurves FIELD_WITHOUT_EFFECT',
    ]);
  });

  it('replaces messages and lists completely, and proxy headers field by field', () => {
    const base = givenMeshConfig(`
tcpKeepalive: {time: 10s, probes: 3}
discoverySelectors: [{matchLabels: {a: b}}]
defaultConfig: {proxyHeaders: {server: {value: a}, requestId: {disabled: true}}, drainDuration: 5s}
`);
    const read = readMeshConfig(
      'mesh.yaml',
      `
tcpKeepalive: {probes: 5}
discoverySelectors: [{matchLabels: {c: d}}]
defaultConfig: {proxyHeaders: {server: {disabled: true}}}
`,
      base,
    );
    if (E.isLeft(read)) throw new Error(read.left.map(problemText).join());
    const { tcpKeepalive, discoverySelectors, defaultConfig } = read.right.mesh;
    expect(tcpKeepalive).toEqual({ probes: 5 });
    expect(discoverySelectors).toEqual([{ matchLabels: { c: 'd' } }]);
    expect(defaultConfig.drainDurationMs).toBe(5_000);
    expect(defaultConfig.proxyHeaders).toEqual({
      server: { value: 'a', disabled: true },
      requestId: { disabled: true },
    });
  });

  it('contains every field of §3.2', () => {
    const yaml = `
proxyListenPort: 1
proxyInboundListenPort: 2
proxyHttpPort: 3
connectTimeout: 1s
tcpKeepalive: {time: 7200s}
protocolDetectionTimeout: 100ms
ingressClass: mine
ingressService: gateway
ingressControllerMode: DEFAULT
ingressSelector: front
enableTracing: false
accessLogFile: /dev/stdout
accessLogFormat: '{"protocol": "%PROTOCOL%"}'
accessLogEncoding: JSON
enableEnvoyAccessLogService: true
trustDomain: td
trustDomainAliases: [old]
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
inboundTrafficPolicy: {mode: LOCALHOST}
enableAutoMtls: false
localityLbSetting: {enabled: false}
rootNamespace: root
defaultServiceExportTo: ["."]
defaultVirtualServiceExportTo: ["."]
defaultDestinationRuleExportTo: ["."]
dnsRefreshRate: 5s
serviceSettings: [{settings: {clusterLocal: true}, hosts: [a.b]}]
discoverySelectors: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
enablePrometheusMerge: false
extensionProviders: [{name: x, envoyFileAccessLog: {path: /dev/stderr}}]
defaultProviders: {accessLogging: [x]}
h2UpgradePolicy: UPGRADE
defaultHttpRetryPolicy: {attempts: 3}
configSources: [{address: "fs:///mesh"}]
meshMTLS: {minProtocolVersion: TLSV1_3}
tlsDefaults: {minProtocolVersion: TLSV1_3}
pathNormalization: {normalization: NONE}
defaultConfig:
  configPath: /a
  binaryPath: /b
  serviceCluster: c
  drainDuration: 1s
  terminationDrainDuration: 1s
  parentShutdownDuration: 2s
  discoveryAddress: d:1
  proxyAdminPort: 1
  controlPlaneAuthPolicy: NONE
  statNameLength: 1
  statusPort: 1
  concurrency: 1
  interceptionMode: TPROXY
  holdApplicationUntilProxyStarts: true
  proxyMetadata: {A: "1"}
`;
    const read = readMeshConfig('mesh.yaml', yaml);
    if (E.isLeft(read)) throw new Error(read.left.map(problemText).join('\n'));
    expect(read.right.warnings.map(({ code, field }) => `${field} ${code}`)).toEqual([
      'defaultConfig.statNameLength FIELD_WITHOUT_EFFECT',
    ]);
    const differs = Object.entries(read.right.mesh).filter(
      ([field, value]) =>
        JSON.stringify(value) !== JSON.stringify(defaultMeshConfig[field as keyof typeof defaultMeshConfig]),
    );
    expect(differs).toHaveLength(yaml.match(/^\w/gm)!.length);
  });

  it('is rejected with the position of invalid YAML', () => {
    expect(errorsOf('a: [1\nb: 2')[0]).toMatch('mesh.yaml:2:1: error: YAML_INVALID');
  });
});

describe('mesh networks', () => {
  it('are empty for an empty file', () => {
    expect(readMeshNetworks('n.yaml', '')).toEqual(E.right({ networks: { networks: {} }, warnings: [] }));
  });

  it('have endpoints and gateways', () => {
    const yaml = `
networks:
  west:
    endpoints: [{fromCidr: 10.1.0.0/16}, {fromRegistry: west}]
    gateways: [{address: 1.2.3.4, port: 15443, locality: eu/a}]
`;
    expect(readMeshNetworks('n.yaml', yaml)).toMatchObject(
      E.right({
        networks: { networks: { west: { gateways: [{ address: '1.2.3.4', port: 15443, locality: 'eu/a' }] } } },
        warnings: [],
      }),
    );
  });

  it('must define their endpoints and gateway addresses', () => {
    const yaml = 'networks: {west: {endpoints: [{fromCidr: x}, {}], gateways: [{port: 0}]}}';
    const read = readMeshNetworks('n.yaml', yaml);
    expect(E.isLeft(read) && read.left.map(({ field }) => field)).toEqual([
      'networks.west.endpoints[0].fromCidr',
      'networks.west.endpoints[1]',
      'networks.west.gateways[0].port',
      'networks.west.gateways[0]',
    ]);
  });

  it.each([
    ['endpoints: [{fromCidr: 10.0.0.0/33}]', 'networks.west.endpoints[0].fromCidr'],
    ['endpoints: [{fromRegistry: ""}]', 'networks.west.endpoints[0].fromRegistry'],
    ['endpoints: [{fromRegistry: a, fromCidr: 10.0.0.0/8}]', 'networks.west.endpoints[0]'],
    ['gateways: [{address: 1.1.1.1, port: 65536}]', 'networks.west.gateways[0].port'],
    ['gateways: [{address: 1.1.1.1}]', 'networks.west.gateways[0].port'],
    ['gateways: [{address: "not a host", port: 1}]', 'networks.west.gateways[0].address'],
    ['gateways: [{registryServiceName: "a b", port: 1}]', 'networks.west.gateways[0].registryServiceName'],
    ['gateways: [{address: 1.1.1.1, registryServiceName: a.b, port: 1}]', 'networks.west.gateways[0]'],
    ['gateways: [{port: 1}]', 'networks.west.gateways[0]'],
    ['gateways: [{address: gateway.example.com, port: 1}, {registryServiceName: a.b.svc.cluster.local, port: 1}]', ''],
  ])('are validated: %s', (network, path) => {
    const read = readMeshNetworks('n.yaml', `networks: {west: {${network}}}`);
    expect(E.isLeft(read) ? read.left.map(({ field }) => field) : []).toEqual(path === '' ? [] : [path]);
  });

  it('are accepted with a warning for unknown fields and networks without endpoints', () => {
    const read = readMeshNetworks('n.yaml', 'networks:\n  west: {gateway: []}\n');
    expect(E.isRight(read) && read.right.warnings.map(codedProblem)).toEqual([
      'n.yaml:2:10: warning: networks.west.gateway: FIELD_UNKNOWN near gateways',
      'n.yaml:2:3: warning: networks.west: FIELD_DOUBTFUL',
    ]);
  });
});

it('exportingNamespaces accepts namespace names and *, and rejects other values', () => {
  const read = (text: string) => readMeshConfig('mesh.yaml', text);
  const of = (text: string) => E.getOrElse(() => ({ mesh: defaultMeshConfig, warnings: [] }))(read(text) as never);
  expect(of('').mesh.exportingNamespaces).toEqual(['*']);
  expect(of('exportingNamespaces: [bank, shop]').mesh.exportingNamespaces).toEqual(['bank', 'shop']);
  expect(of('exportingNamespaces: []').mesh.exportingNamespaces).toEqual([]);
  for (const wrongValue of ['null', 'bank', '[null]', '[1]', '["."]', '["Bank"]', '["a.b"]'])
    expect(E.isLeft(read(`exportingNamespaces: ${wrongValue}`)), wrongValue).toBe(true);
});
