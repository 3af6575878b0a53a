/** Random inputs of a bootstrap: valid ones, typing errors, and hostile ones that should prevent a start of Envoy. */
import fc from 'fast-check';
import { stringify } from 'yaml';
import type { ProxyFlags } from '../../src/agent/options/proxy-flags.ts';

export interface BootstrapInput {
  readonly role: 'sidecar' | 'router';
  readonly flags: ProxyFlags;
  readonly env: Readonly<Record<string, string>>;
  /** Contents of files: mesh configuration, labels and annotations of the pod. */
  readonly mesh: string;
  readonly labels: string;
  readonly annotations: string;
  /** Whether the workload has an identity. Without one, settings that need a certificate are rejected. */
  readonly hasCredentialServer: boolean;
}

/** Texts that may break a step between the input and the bootstrap. */
const hostileText = fc.oneof(
  fc.constantFrom('', ' ', '__proto__', 'constructor', 'toString', '\0', '\ud800', '{pod_ip}', '{pod_ip}{pod_ip}'),
  fc.constantFrom(
    '$(HOST_IP)',
    '$(HOST_IP):1',
    '[$(HOST_IP)]:1',
    '~',
    'a~b',
    ',',
    ';',
    '/',
    '..',
    '\r\nx: y',
    '%',
    '"',
    "'",
  ),
  fc.constantFrom(
    '(',
    '[',
    '*',
    '(?!a)',
    '(a{1000}){1000}',
    '(?P<n>a)',
    '\\',
    '[[:digit:]]',
    '\\C',
    '^$',
    '.*',
    'é',
    '💥',
  ),
  fc.constantFrom(
    '10.0.0.1',
    '::1',
    '[::1]',
    '[::1]:0',
    '10.0.0.1:99999',
    'host',
    'host:',
    ':1',
    'host:1:2',
    'http://h:1',
  ),
  fc.constantFrom('true', 'false', 'null', '0', '-1', '1e9', 'NaN', 'Infinity', '1s', '-1s', '0.1ns', '1000000h', '2m'),
  fc.constantFrom('x'.repeat(5_000), '['.repeat(60) + ']'.repeat(60), `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ maxLength: 12 }),
);
const plainText = fc.constantFrom('web', 'a.b', 'web-0', 'my_tag', 'shop', 'request.host', 'outbound', 'x|y');
const tagName = fc.constantFrom('my_tag', 'request.host', 'a/b', 'destination_port');
const address = fc.constantFrom('zipkin:9411', '10.0.0.7:8126', '[2001:db8::7]:80', '$(HOST_IP):8126', 'a.b.svc:15012');
const duration = fc.constantFrom('1s', '45s', '1h', '1.5s', '2m30s', '100h');
const number = fc.oneof(
  fc.integer({ min: -1, max: 70_000 }),
  fc.constantFrom(0, 1, 65_535, 2 ** 31, 2 ** 32, 2 ** 53, 1e300, 0.5, -0, Number.NaN, Number.POSITIVE_INFINITY),
);

const asText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

const nestedValue = (levels: number): unknown =>
  levels === 0 ? 1 : levels % 2 === 0 ? [nestedValue(levels - 1)] : { a: nestedValue(levels - 1) };
const anyValue = fc.oneof(
  hostileText,
  number,
  fc.constantFrom(null, true, false, [], {}, [[]], { a: {} }),
  fc.integer({ min: 1, max: 90 }).map(nestedValue),
  fc.dictionary(hostileText, hostileText, { maxKeys: 3 }),
  fc.array(hostileText, { maxLength: 3 }),
);

/** Draws mostly valid values. */
function mostly(intended: fc.Arbitrary<unknown>, other: fc.Arbitrary<unknown> = hostileText): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 400, arbitrary: intended },
    { weight: 1, arbitrary: other },
    { weight: 1, arbitrary: anyValue },
  );
}

/** A subset of the fields. */
function optionalFields(
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(fields, { requiredKeys: [] });
}

const texts = (item: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.array(item, { maxLength: 4 });
const map = fc.dictionary(plainText, mostly(plainText), { maxKeys: 4 });
const tlsSettings = optionalFields({
  mode: mostly(fc.constantFrom('DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL')),
  caCertificates: mostly(fc.constant('/etc/ssl/certs/ca-certificates.crt')),
  clientCertificate: mostly(fc.constant('/none/cert.pem')),
  privateKey: mostly(fc.constant('/none/key.pem')),
  subjectAltNames: mostly(texts(mostly(fc.constantFrom('spiffe://a/b', 'host', '10.0.0.1')))),
  sni: mostly(plainText),
});
const service = optionalFields({
  address: mostly(address),
  tlsSettings: mostly(tlsSettings),
  tcpKeepalive: mostly(
    optionalFields({ probes: mostly(fc.nat(9), number), time: mostly(duration), interval: mostly(duration) }),
  ),
});
const tracing = optionalFields({
  zipkin: mostly(optionalFields({ address: mostly(address) })),
  datadog: mostly(optionalFields({ address: mostly(address) })),
  lightstep: mostly(optionalFields({ address: mostly(address), accessToken: mostly(plainText) })),
  stackdriver: mostly(optionalFields({ debug: mostly(fc.boolean()) })),
  sampling: mostly(fc.double({ min: 0, max: 100 }), number),
  maxPathTagLength: mostly(fc.nat(300), number),
  customTags: mostly(
    fc.dictionary(plainText, optionalFields({ literal: optionalFields({ value: mostly(plainText) }) }), { maxKeys: 2 }),
  ),
  tlsSettings: mostly(tlsSettings),
});

const proxyConfig = optionalFields({
  configPath: mostly(fc.constantFrom('./etc/istio/proxy', '/tmp/x', 'a b')),
  serviceCluster: mostly(plainText),
  drainDuration: mostly(duration),
  parentShutdownDuration: mostly(duration),
  terminationDrainDuration: mostly(duration),
  discoveryAddress: mostly(address),
  controlPlaneAuthPolicy: mostly(fc.constantFrom('NONE', 'MUTUAL_TLS')),
  proxyAdminPort: mostly(fc.integer({ min: 1, max: 65_535 }), number),
  statusPort: mostly(fc.integer({ min: 0, max: 65_535 }), number),
  concurrency: mostly(fc.nat(8), number),
  statNameLength: mostly(fc.constant(189), number),
  statsdUdpAddress: mostly(
    fc.constantFrom('10.0.0.1:8125', '[::1]:8125', 'statsd:8125'),
    fc.oneof(fc.constant('[fe80::1%eth0]:8125'), hostileText),
  ),
  zipkinAddress: mostly(address),
  meshId: mostly(plainText),
  interceptionMode: mostly(fc.constantFrom('REDIRECT', 'TPROXY', 'NONE')),
  tracingServiceName: mostly(
    fc.constantFrom('APP_LABEL_AND_NAMESPACE', 'CANONICAL_NAME_ONLY', 'CANONICAL_NAME_AND_NAMESPACE'),
  ),
  proxyMetadata: mostly(
    fc.dictionary(fc.oneof(plainText, fc.constantFrom('ISTIO_META_X', '__proto__', 'ISTIO_META_')), mostly(plainText)),
  ),
  runtimeValues: mostly(
    fc.dictionary(
      fc.oneof(
        plainText,
        fc.constantFrom('a', 'a.b', 're2.max_program_size.error_level', 'overload.global_downstream_max_connections'),
      ),
      mostly(fc.constantFrom('', '1', 'true', 'false', '1000')),
    ),
  ),
  extraStatTags: mostly(texts(mostly(tagName))),
  proxyStatsMatcher: mostly(
    optionalFields({
      inclusionPrefixes: mostly(texts(mostly(plainText))),
      inclusionSuffixes: mostly(texts(mostly(plainText))),
      inclusionRegexps: mostly(texts(mostly(fc.constantFrom('.*{pod_ip}.*', 'a|b', 'http.*rq')))),
    }),
  ),
  fileFlushInterval: mostly(duration),
  tracing: mostly(tracing),
  envoyMetricsService: mostly(service),
  envoyAccessLogService: mostly(service),
  gatewayTopology: mostly(optionalFields({ numTrustedProxies: mostly(fc.nat(3), number) })),
  readinessProbe: mostly(optionalFields({ periodSeconds: mostly(fc.nat(9), number) })),
  image: mostly(map),
  connectionSettings: mostly(
    optionalFields({ globalDownstreamConnectionLimit: mostly(fc.integer({ min: 1, max: 1e6 }), number) }),
  ),
  proxyHeaders: mostly(map),
  caCertificatesPem: mostly(texts(plainText)),
});

/** YAML that is sometimes invalid. */
const yamlOf = (value: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 100, arbitrary: value.map((content) => stringify(content)) },
    { weight: 1, arbitrary: anyValue.map((content) => stringify(content)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('a: [', '&a [*a]', 'a: &a {b: *a}', '{}', '- 1', '"', '\t', '__proto__: {x: 1}'),
    },
  );

/** Text in the form that the downward API writes. */
const downward = (keys: fc.Arbitrary<string>, values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(keys, values), { maxLength: 4 })
    .map((entries) =>
      entries.map(([key, value]) => `${key.replaceAll(/[\n=]/g, '')}=${JSON.stringify(asText(value))}\n`).join(''),
    );

/** Environment variables cannot contain other characters. */
const meta = (value: fc.Arbitrary<unknown>) =>
  value.map((content) => asText(content).toWellFormed().replaceAll('\0', ''));
const env = optionalFields({
  POD_NAME: meta(mostly(plainText)),
  POD_NAMESPACE: meta(mostly(plainText)),
  SERVICE_ACCOUNT: meta(mostly(plainText)),
  INSTANCE_IP: meta(mostly(fc.constantFrom('10.0.0.1', '2001:db8::1'))),
  HOST_IP: meta(mostly(fc.constantFrom('10.0.0.9', '2001:db8::9'))),
  ISTIO_META_CLUSTER_ID: meta(mostly(plainText)),
  ISTIO_META_ISTIO_VERSION: meta(mostly(fc.constant('1.30.0'))),
  ISTIO_META_LABELS: meta(mostly(plainText)),
  ISTIO_META_ANNOTATIONS: meta(mostly(plainText)),
  ISTIO_META_NAMESPACE: meta(mostly(plainText)),
  ISTIO_META_WORKLOAD_NAME: meta(mostly(plainText)),
  ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS: meta(mostly(fc.nat(1_000), number)),
  ISTIO_META_TLS_CLIENT_ROOT_CERT: meta(mostly(plainText)),
  ISTIO_META___proto__: meta(mostly(plainText)),
  ISTIO_METAJSON_LABELS: meta(mostly(map).map((value) => JSON.stringify(value))),
  ISTIO_METAJSON_A: meta(mostly(map).map((value) => JSON.stringify(value))),
  EXIT_ON_ZERO_ACTIVE_CONNECTIONS: meta(mostly(fc.constantFrom('true', 'false'))),
  ENVOY_STATUS_PORT: meta(mostly(fc.constantFrom(0, 15021, 15022), number)),
  ENVOY_PROMETHEUS_PORT: meta(mostly(fc.constantFrom(0, 15090), number)),
  ENVOY_SECURE_METRICS_PORT: meta(mostly(fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 15091), number)),
  ENVOY_SECURE_MERGED_METRICS_PORT: meta(mostly(fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 15092), number)),
  ISTIO_DUAL_STACK: meta(mostly(fc.constantFrom('true', 'false'))),
  PROXY_CONFIG: meta(yamlOf(proxyConfig)),
});

/** Valid values of each annotation. */
const annotationsMeant: Readonly<Record<string, readonly string[]>> = {
  'sidecar.istio.io/statsInclusionPrefixes': ['a,b', 'a', '{pod_ip}'],
  'sidecar.istio.io/statsInclusionSuffixes': ['a,b', 'rq'],
  'sidecar.istio.io/statsInclusionRegexps': ['a.*', '.*{pod_ip}.*'],
  'sidecar.istio.io/extraStatTags': ['a,b', 'request.host'],
  'sidecar.istio.io/statsFlushInterval': ['5s', '10s'],
  'sidecar.istio.io/statsEvictionInterval': ['10s', '7s'],
  'sidecar.istio.io/statsHistogramBuckets': ['{"istio": [1, 5]}'],
  'status.sidecar.istio.io/port': ['15020', '0'],
  'sidecar.istio.io/discoveryAddress': ['a:1'],
  'proxy.istio.io/config': ['concurrency: 1', '{}'],
  __proto__x: ['a'],
  other: ['a'],
};
const annotations = fc
  .array(
    fc
      .constantFrom(...Object.entries(annotationsMeant))
      .chain(([key, values]) =>
        mostly(fc.constantFrom(...values)).map(
          (value) => `${key.replace('__x', '__')}=${JSON.stringify(asText(value))}\n`,
        ),
      ),
    { maxLength: 4 },
  )
  .map((lines) => lines.join(''));

const flags = optionalFields({
  nodeId: meta(mostly(fc.constantFrom('sidecar~10.0.0.1~a.b~c', 'router~10.0.0.1~a.b~c'))),
  instanceIPs: meta(mostly(fc.constantFrom('10.0.0.1', '2001:db8::1', '10.0.0.1,2001:db8::1', '2001:db8::1,10.0.0.1'))),
  pilotSAN: meta(mostly(fc.constantFrom('a', 'a,b', 'spiffe://a/b'))),
  outlierLogPath: meta(mostly(fc.constantFrom('/dev/stdout', '/dev/null'))),
  stsPort: meta(mostly(fc.constantFrom('0', '15463'))),
  platformMetadata: meta(mostly(map).map((value) => JSON.stringify(value))),
  connectTimeout: meta(mostly(duration)),
  domain: meta(mostly(plainText)),
  id: meta(mostly(plainText)),
  serviceCluster: meta(mostly(plainText)),
  statsdUdpAddress: meta(mostly(address)),
  drainDuration: meta(mostly(duration)),
  concurrency: meta(mostly(fc.nat(4), number)),
});

export const bootstrapInput: fc.Arbitrary<BootstrapInput> = fc.record({
  role: fc.constantFrom('sidecar', 'router'),
  flags: flags as fc.Arbitrary<ProxyFlags>,
  env: env as fc.Arbitrary<Record<string, string>>,
  mesh: yamlOf(optionalFields({ defaultConfig: mostly(proxyConfig), trustDomain: plainText })),
  labels: downward(
    fc.oneof(fc.constantFrom('app', 'istio-locality', 'service.istio.io/canonical-name', '__proto__'), plainText),
    mostly(plainText),
  ),
  annotations,
  hasCredentialServer: fc.oneof(
    { weight: 4, arbitrary: fc.constant(true) },
    { weight: 1, arbitrary: fc.constant(false) },
  ),
});
