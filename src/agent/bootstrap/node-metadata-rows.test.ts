/** Node metadata of a bootstrap, one test per requirement (test/spec-rows/agent-rows.ts). */
import { describe, expect, test } from 'vitest';
import { annotated, bootstrapOf, labelled } from '../../../test/fixtures/configured-bootstraps.ts';
import { generateBootstrap, type Sources } from '../../../test/fixtures/generated-bootstrap.ts';

describe('node metadata (agent §5.1)', () => {
  const metadata = (sources: Sources) => bootstrapOf(sources).node.metadata;

  test.each<[row: string, sources: Sources, expected: object]>([
    [
      'ISTIO_META_ variables of proxyMetadata, overridden by the environment',
      {
        env: { PROXY_CONFIG: 'proxyMetadata: {ISTIO_META_A: mesh, ISTIO_META_B: mesh, C: mesh}', ISTIO_META_B: 'own' },
      },
      { A: 'mesh', B: 'own', C: undefined },
    ],
    ['top-level keys of ISTIO_METAJSON_…', { env: { ISTIO_METAJSON_ANY: '{"A": [1]}' } }, { A: [1], ANY: undefined }],
    [
      'INSTANCE_IPS without duplicates',
      { flags: { instanceIPs: '10.0.0.1,10.0.0.2,10.0.0.1' } },
      { INSTANCE_IPS: '10.0.0.1,10.0.0.2' },
    ],
    [
      'options, which override unknown keys',
      { env: { ISTIO_META_ENVOY_STATUS_PORT: '9' } },
      { ENVOY_STATUS_PORT: 15021 },
    ],
    ['STS_PORT', { flags: { stsPort: '15463' } }, { STS_PORT: '15463' }],
    ['STS_PORT, not set for 0', { flags: { stsPort: '0' } }, { STS_PORT: undefined }],
    [
      'EXIT_ON_ZERO_ACTIVE_CONNECTIONS as a string',
      { env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: '1' } },
      { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' },
    ],
    [
      'EXIT_ON_ZERO_ACTIVE_CONNECTIONS, not set if off',
      { env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'false' } },
      { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: undefined },
    ],
    [
      'ISTIO_METAJSON_LABELS, also as top-level keys except interpreted ones',
      { env: { ISTIO_METAJSON_LABELS: '{"app": "a", "NETWORK": "n", "TIER": "label"}', ISTIO_META_TIER: 'own' } },
      { app: 'a', NETWORK: undefined, TIER: 'own' },
    ],
    ['PILOT_SAN', { flags: { pilotSAN: 'a,b' } }, { PILOT_SAN: ['a', 'b'] }],
    ['OUTLIER_LOG_PATH', { flags: { outlierLogPath: '/dev/null' } }, { OUTLIER_LOG_PATH: '/dev/null' }],
    ['PLATFORM_METADATA', { flags: { platformMetadata: '{"a": "b"}' } }, { PLATFORM_METADATA: { a: 'b' } }],
    ['PLATFORM_METADATA, not set if empty', { flags: { platformMetadata: '{}' } }, { PLATFORM_METADATA: undefined }],
    [
      'LABELS of the file, which override static ones, without pod-template-hash',
      labelled('a="file"\npod-template-hash="1"\n', { ISTIO_METAJSON_LABELS: '{"a": "static", "b": "static"}' }),
      { LABELS: { a: 'file', b: 'static' }, STATIC_LABELS: { a: 'static', b: 'static' } },
    ],
    ['ANNOTATIONS', annotated({ a: 'b' }), { ANNOTATIONS: { a: 'b' } }],
  ])('sets metadata by %s (agent §5.1)', (_, sources, expected) => {
    const nodeMetadata = metadata(sources);
    for (const [key, value] of Object.entries(expected)) expect({ [key]: nodeMetadata[key] }).toEqual({ [key]: value });
  });

  test('encodes the merged configuration in PROXY_CONFIG with YAML field names', () => {
    expect(metadata({ env: { PROXY_CONFIG: 'drainDuration: 1m' } }).PROXY_CONFIG).toMatchObject({
      drainDuration: '60s',
      statusPort: 15020,
    });
  });

  test('omits invalid JSON and labels that are not strings, with a warning', () => {
    const env = { ISTIO_METAJSON_A: '{', ISTIO_METAJSON_LABELS: '{"a": 1}' };
    const { bootstrap, warnings } = generateBootstrap({ env });
    expect(bootstrap.node.metadata).not.toHaveProperty('LABELS');
    expect(warnings).toEqual([
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_A', reason: expect.stringMatching(/JSON/) },
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_LABELS', reason: expect.stringMatching(/"a"/) },
    ]);
  });

  test('sets `credential` if a credential server is available', () => {
    expect(generateBootstrap({}, true).bootstrap.node.metadata.credential).toBe('true');
    expect(generateBootstrap({}, false).bootstrap.node.metadata).not.toHaveProperty('credential');
  });

  test('lists keys that the control plane knows first, in a fixed order', () => {
    const keys = Object.keys(
      metadata({ env: { ISTIO_META_ABC: 'x', ISTIO_META_ISTIO_PROXY_SHA: 'y', POD_NAME: 'z' } }),
    );
    expect(keys.slice(0, 3)).toEqual(['PROXY_CONFIG', 'ISTIO_VERSION', 'INSTANCE_IPS']);
    expect(keys.indexOf('ISTIO_PROXY_SHA')).toBeLessThan(keys.indexOf('ABC'));
  });

  test.each<[string, Sources, object | undefined]>([
    ['by a label with dots', labelled('istio-locality="r.z.s"\n'), { region: 'r', zone: 'z', sub_zone: 's' }],
    [
      'by a label with slashes, which may contain dots',
      labelled('istio-locality="r.1/z"\n'),
      { region: 'r.1', zone: 'z' },
    ],
    [
      'by cloud metadata',
      { flags: { platformMetadata: '{"gcp_location": "us-central1-a"}' } },
      { region: 'us-central1', zone: 'us-central1-a' },
    ],
    ['of no source as unset', {}, undefined],
  ])('determines the locality %s (agent §5.1)', (_, sources, expected) => {
    expect(bootstrapOf(sources).node.locality).toEqual(expected);
  });

  const shop = { POD_NAMESPACE: 'shop' };
  test.each<[string, Sources, string]>([
    ['by --serviceCluster', { flags: { serviceCluster: 'mine' }, env: shop }, 'mine'],
    ['by the app label', labelled('app="web"\n', shop), 'web.shop'],
    ['by the workload', { env: { ...shop, ISTIO_META_WORKLOAD_NAME: 'w' } }, 'w.shop'],
    ['by the namespace alone', { env: shop }, 'istio-proxy.shop'],
    [
      'by the default if labels and workload are empty',
      labelled('app=""\n', { ISTIO_META_WORKLOAD_NAME: '' }),
      'istio-proxy',
    ],
    [
      'by CANONICAL_NAME_ONLY, ignoring empty labels',
      labelled('service.istio.io/canonical-name=""\napp="web"\n', {
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'web',
    ],
    ['by the default without sources', {}, 'istio-proxy'],
    [
      'by CANONICAL_NAME_ONLY',
      labelled('service.istio.io/canonical-name="c"\n', {
        ...shop,
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'c',
    ],
    [
      'by CANONICAL_NAME_ONLY and the precedence of its labels',
      labelled('app="web"\napp.kubernetes.io/name="k"\n', {
        ...shop,
        ISTIO_META_WORKLOAD_NAME: 'w',
        PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY',
      }),
      'k',
    ],
    [
      'by CANONICAL_NAME_ONLY and the app label',
      labelled('app="web"\n', { ...shop, PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_ONLY' }),
      'web',
    ],
    [
      'by the later source, even if an earlier one selects labels',
      {
        env: { ...shop, PROXY_CONFIG: 'serviceCluster: mine' },
        files: { 'etc/istio/config/mesh': 'defaultConfig: {tracingServiceName: CANONICAL_NAME_ONLY}' },
      },
      'mine',
    ],
    [
      'by labels of the later source, despite an earlier source and the flag',
      {
        flags: { serviceCluster: 'flag' },
        env: { ...shop, PROXY_CONFIG: 'tracingServiceName: APP_LABEL_AND_NAMESPACE' },
        files: { 'etc/istio/config/mesh': 'defaultConfig: {serviceCluster: mine}' },
      },
      'istio-proxy.shop',
    ],
    [
      'by CANONICAL_NAME_AND_NAMESPACE',
      { env: { ...shop, PROXY_CONFIG: 'tracingServiceName: CANONICAL_NAME_AND_NAMESPACE' } },
      'istio-proxy.shop',
    ],
  ])('determines node.cluster %s (agent §5.1)', (_, sources, expected) => {
    expect(bootstrapOf(sources).node.cluster).toBe(expected);
  });
});
