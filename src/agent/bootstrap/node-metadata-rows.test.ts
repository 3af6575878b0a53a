/** One test per row of spec/agent.md §5.1: the node of a bootstrap. */
import { describe, expect, test } from 'vitest';
import { annotated, bootstrapOf, labelled } from '../../../test/fixtures/configured-bootstraps.ts';
import { madeBootstrap, type Sources } from '../../../test/fixtures/made-bootstrap.ts';

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

  test('§5.1 PROXY_CONFIG is the merged configuration in its YAML field names', () => {
    expect(metadata({ env: { PROXY_CONFIG: 'drainDuration: 1m' } }).PROXY_CONFIG).toMatchObject({
      drainDuration: '60s',
      statusPort: 15020,
    });
  });

  test('§5.1 invalid JSON, and labels that are not strings, are left out with a warning', () => {
    const env = { ISTIO_METAJSON_A: '{', ISTIO_METAJSON_LABELS: '{"a": 1}' };
    const { bootstrap, warnings } = madeBootstrap({ env });
    expect(bootstrap.node.metadata).not.toHaveProperty('LABELS');
    expect(warnings).toEqual([
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_A', reason: expect.stringMatching(/JSON/) },
      { event: 'option.ignored', setting: 'ISTIO_METAJSON_LABELS', reason: expect.stringMatching(/"a"/) },
    ]);
  });

  test('§5.1 an available credential server sets credential', () => {
    expect(madeBootstrap({}, true).bootstrap.node.metadata.credential).toBe('true');
    expect(madeBootstrap({}, false).bootstrap.node.metadata).not.toHaveProperty('credential');
  });

  test('§5.1 keys that the control plane knows come first, in a fixed order', () => {
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
