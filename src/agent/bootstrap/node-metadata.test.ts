import { describe, expect, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { defaultProxyConfig } from '../../model/mesh/proxy-config.ts';
import { parseDownwardFile } from '../options/downward-file.ts';
import { buildNode, type NodeFacts } from './node-metadata.ts';

function facts(changes: Partial<NodeFacts> = {}): NodeFacts {
  return {
    role: 'sidecar',
    workloadId: 'web-0.shop',
    domain: 'shop.svc.cluster.local',
    addresses: ['10.1.2.3', '10.1.2.4', '10.1.2.3'],
    config: defaultProxyConfig,
    env: {},
    podLabels: {},
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
    ...changes,
  };
}

const metadataOf = (changes: Partial<NodeFacts>): Record<string, unknown> => buildNode(facts(changes)).node.metadata;

describe('Envoy node', () => {
  test('ignores a workload name or namespace that is not a string, because Envoy would reject the cluster name', () => {
    const env = { ISTIO_METAJSON_A: '{"WORKLOAD_NAME": 5, "NAMESPACE": {"a": 1}}' };
    const { node } = buildNode(facts({ env }));
    expect(node.cluster).toBe('istio-proxy');
    expect(node.metadata).toMatchObject({ WORKLOAD_NAME: 5, NAMESPACE: { a: 1 } });
    const config = { ...defaultProxyConfig, tracingServiceName: 'CANONICAL_NAME_ONLY' as const };
    expect(buildNode(facts({ env, config })).node.cluster).toBe('istio-proxy');
  });

  test('has an ID of type, first address, workload and domain', () => {
    expect(buildNode(facts()).node.id).toBe('sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local');
  });

  test('joins all addresses in INSTANCE_IPS without duplicates', () => {
    expect(metadataOf({}).INSTANCE_IPS).toBe('10.1.2.3,10.1.2.4');
  });

  test("contains the agent's version and whether the agent serves certificates", () => {
    expect(metadataOf({})).toMatchObject({ ISTIO_VERSION: '0.9.1', WORKLOAD_CERTIFICATES: 'false' });
    expect(metadataOf({ hasSecrets: true })).toMatchObject({ ISTIO_VERSION: '0.9.1', WORKLOAD_CERTIFICATES: 'true' });
  });

  test('takes the version and WORKLOAD_CERTIFICATES from ISTIO_META_ variables if they are set', () => {
    const env = { ISTIO_META_ISTIO_VERSION: '1.30.0' };
    expect(metadataOf({ env })).toMatchObject({ ISTIO_VERSION: '1.30.0', WORKLOAD_CERTIFICATES: 'false' });
    const overridden = { ...env, ISTIO_META_WORKLOAD_CERTIFICATES: 'true' };
    expect(metadataOf({ env: overridden })).toMatchObject({ WORKLOAD_CERTIFICATES: 'true' });
  });

  test('prefers metadata of the environment to that of the mesh, and keeps equals signs in values', () => {
    const config = { ...defaultProxyConfig, proxyMetadata: { ISTIO_META_A: 'mesh', ISTIO_META_B: 'mesh', OTHER: 'x' } };
    const metadata = metadataOf({ config, env: { ISTIO_META_A: 'a=b', UNRELATED: '1' } });
    expect(metadata).toMatchObject({ A: 'a=b', B: 'mesh' });
    expect(metadata).not.toHaveProperty('OTHER');
    expect(metadata).not.toHaveProperty('UNRELATED');
  });

  test('merges JSON variables in any order, and omits invalid ones with a warning', () => {
    const { node, warnings } = buildNode(
      facts({ env: { ISTIO_METAJSON_ANY: '{"X":{"y":1}}', ISTIO_METAJSON_BAD: '{', ISTIO_METAJSON_LIST: '[1]' } }),
    );
    expect(node.metadata.X).toEqual({ y: 1 });
    expect(node.metadata).not.toHaveProperty('ANY');
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatchObject({ event: 'option.ignored', setting: 'ISTIO_METAJSON_BAD' });
  });

  test('prefers pod labels to labels of the environment, and omits the template hash', () => {
    const metadata = metadataOf({
      env: { ISTIO_METAJSON_LABELS: '{"app":"env","tier":"front"}' },
      podLabels: { app: 'web', 'pod-template-hash': '123' },
    });
    expect(metadata.STATIC_LABELS).toEqual({ app: 'env', tier: 'front' });
    expect(metadata.LABELS).toEqual({ app: 'web', tier: 'front' });
  });

  test('lists keys that the control plane knows before other keys', () => {
    const keys = Object.keys(metadataOf({ env: { ISTIO_META_ZEBRA: '1', POD_NAMESPACE: 'shop' } }));
    expect(keys.indexOf('NAMESPACE')).toBeLessThan(keys.indexOf('ZEBRA'));
    expect(keys[0]).toBe('PROXY_CONFIG');
  });

  test.each([
    [
      'the configured serviceCluster',
      { config: { ...defaultProxyConfig, serviceCluster: 'gateway' }, podLabels: { app: 'web' } },
      'gateway',
    ],
    ['the label app', { podLabels: { app: 'web' }, env: { POD_NAMESPACE: 'shop' } }, 'web.shop'],
    ['the workload name', { env: { POD_NAMESPACE: 'shop', ISTIO_META_WORKLOAD_NAME: 'web' } }, 'web.shop'],
    ['the namespace and a default name', { env: { POD_NAMESPACE: 'shop' } }, 'istio-proxy.shop'],
    ['a default name if no other is known', {}, 'istio-proxy'],
  ] as [string, Partial<NodeFacts>, string][])('determines the service cluster by %s', (_, changes, expected) => {
    expect(buildNode(facts(changes)).node.cluster).toBe(expected);
  });

  test.each([
    ['a/b/c', { region: 'a', zone: 'b', sub_zone: 'c' }],
    ['a.b', { region: 'a', zone: 'b' }],
    ['a.b/c.d', { region: 'a.b', zone: 'c.d' }],
  ])('parses the locality label %s', (label, expected) => {
    expect(buildNode(facts({ podLabels: { 'istio-locality': label } })).node.locality).toEqual(expected);
  });
});

describe('downward API files', () => {
  test("are unquoted by Go's rules", () => {
    const content = 'app="web"\nnote="a \\"b\\"\\n\\u00e9 \\xc3\\xa9"\nnothing\n';
    expect(parseDownwardFile(content, 'labels')).toEqual({ app: 'web', note: 'a "b"\né é' });
  });

  test('are rejected with file and line if a value is unquoted', () => {
    expect(() => parseDownwardFile('a="b"\napp=web', 'labels')).toThrow(
      codedError('FILE_UNREADABLE', { path: 'labels', line: 2 }),
    );
  });
});
