import { describe, expect, it } from 'vitest';
import { type GivenFilter, type JsonObject, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import { originsOf } from '../inputs/message-origin.ts';

const timeout = (match: string, seconds = 7, operation = 'MERGE'): string =>
  `{applyTo: CLUSTER, match: ${match}, patch: {operation: ${operation}, value: {connect_timeout: ${seconds}s}}}`;

const timedOut = (clusters: readonly JsonObject[], time = '7s'): readonly string[] =>
  clusters.filter(({ connectTimeout }) => connectTimeout === time).map(({ name }) => name);

describe('clusters that a patch matches', () => {
  it.each<[string, keyof typeof nodes, string, string[]]>([
    ['cluster name', 'client', '{cluster: {name: outbound|80||web.test}}', ['outbound|80||web.test']],
    [
      'service',
      'client',
      '{context: SIDECAR_OUTBOUND, cluster: {service: web.test}}',
      ['outbound|80||web.test', 'outbound|80|one|web.test'],
    ],
    ['service and subset', 'client', '{cluster: {service: web.test, subset: one}}', ['outbound|80|one|web.test']],
    ['port', 'client', '{cluster: {portNumber: 5432}}', ['outbound|5432||db.test']],
    ['inbound port', 'server', '{context: SIDECAR_INBOUND, cluster: {portNumber: 8080}}', ['inbound|8080||']],
    [
      'service of an inbound port',
      'server',
      '{context: SIDECAR_INBOUND, cluster: {service: web.test}}',
      ['inbound|8080||'],
    ],
    ['service without the inbound port', 'server', '{context: SIDECAR_INBOUND, cluster: {service: db.test}}', []],
    ['inbound context', 'server', '{context: SIDECAR_INBOUND}', ['inbound|8080||', 'InboundPassthroughCluster']],
    ['gateway context, on a sidecar', 'client', '{context: GATEWAY}', []],
    [
      'gateway context and port, on a gateway',
      'door',
      '{context: GATEWAY, cluster: {portNumber: 5432}}',
      ['outbound|5432||db.test'],
    ],
    ['sidecar context, on a gateway', 'door', '{context: SIDECAR_OUTBOUND}', []],
    ['missing service', 'client', '{cluster: {service: web}}', []],
  ])('a match by %s selects the expected clusters', (_description, node, match, expected) => {
    expect(timedOut(new PatchedMesh({ patches: [timeout(match)] }).json('clusters', nodes[node]))).toEqual(expected);
  });

  it('context ANY matches all clusters in both directions', () => {
    const clusters = new PatchedMesh({ patches: [timeout('{context: ANY}')] }).json('clusters', nodes.server);
    expect(timedOut(clusters)).toEqual(clusters.map(({ name }) => name));
    expect(clusters.length).toBeGreaterThan(5);
  });
});

describe('operations on clusters', () => {
  const web = 'outbound|80||web.test';
  const clusterMatch = `{cluster: {name: "${web}"}}`;

  it('a merge overrides fields, merges messages, and appends or replaces lists', () => {
    const value = '{circuit_breakers: {thresholds: [{max_connections: 5}]}, outlier_detection: {consecutive_5xx: 3}}';
    const merge = (operation: string) =>
      new PatchedMesh({
        patches: [`{applyTo: CLUSTER, match: ${clusterMatch}, patch: {operation: ${operation}, value: ${value}}}`],
      }).one('clusters', nodes.client, web);
    const unpatched = new PatchedMesh().one('clusters', nodes.client, web);
    expect(unpatched.circuitBreakers.thresholds).toHaveLength(1);
    const appended = merge('MERGE');
    expect(appended.circuitBreakers.thresholds).toEqual([
      ...unpatched.circuitBreakers.thresholds,
      { maxConnections: 5 },
    ]);
    expect(appended.outlierDetection).toMatchObject({ consecutive5xx: 3 });
    expect(merge('MERGE_AND_REPLACE_LIST').circuitBreakers.thresholds).toEqual([{ maxConnections: 5 }]);
    expect({ ...appended, circuitBreakers: 0, outlierDetection: 0 }).toEqual({
      ...unpatched,
      circuitBreakers: 0,
      outlierDetection: 0,
    });
  });

  describe('merge of a transport socket', () => {
    const node = { ...nodes.client, metadata: { WORKLOAD_CERTIFICATES: 'true' } };
    const type = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
    const settings = 'common_tls_context: { tls_params: { tls_minimum_protocol_version: TLSv1_3 } }';
    const merge = (name: string, operation = 'MERGE', cluster = web): PatchedMesh => {
      const typed = name.endsWith('tls') ? `, typed_config: { "@type": ${type}, ${settings} }` : '';
      const value = `{ connect_timeout: 7s, transport_socket: { name: ${name}${typed} } }`;
      const match = `{ cluster: { name: "${cluster}" } }`;
      return new PatchedMesh({
        patches: [`{applyTo: CLUSTER, match: ${match}, patch: {operation: ${operation}, value: ${value}}}`],
      });
    };
    const unpatched = new PatchedMesh().one('clusters', node, web);

    it.each(['MERGE', 'MERGE_AND_REPLACE_LIST'])(
      'the socket is merged by name into the transport socket match with %s',
      (operation) => {
        const patchedCluster = merge('envoy.transport_sockets.tls', operation).one('clusters', node, web);
        expect(patchedCluster.transportSocket).toBeUndefined();
        expect(patchedCluster.connectTimeout).toBe('7s');
        const [istio, disabled] = unpatched.transportSocketMatches;
        expect(patchedCluster.transportSocketMatches[1]).toEqual(disabled);
        const { typedConfig } = patchedCluster.transportSocketMatches[0].transportSocket;
        expect(typedConfig.commonTlsContext.tlsParams.tlsMinimumProtocolVersion).toBe('TLSv1_3');
        expect(typedConfig.sni).toBe(istio.transportSocket.typedConfig.sni);
      },
    );

    it('a cluster without a socket match of that name is unchanged, and the failure is reported', () => {
      const patchedMesh = merge('envoy.transport_sockets.quic');
      expect(patchedMesh.one('clusters', node, web)).toEqual(unpatched);
      expect(patchedMesh.problems()).toEqual([
        'the cluster has no transport socket envoy.transport_sockets.quic for any of its endpoints',
      ]);
    });

    it("the socket is merged into the cluster's socket if endpoints do not select one", () => {
      const patchedMesh = merge('envoy.transport_sockets.tls', 'MERGE', 'PassthroughCluster');
      expect(patchedMesh.one('clusters', node, 'PassthroughCluster').transportSocket.name).toBe(
        'envoy.transport_sockets.tls',
      );
    });
  });

  it("a merge does not change a cluster's name", () => {
    const patchedMesh = new PatchedMesh({
      patches: [
        `{applyTo: CLUSTER, match: ${clusterMatch}, patch: {operation: MERGE, value: {name: x, alt_stat_name: y}}}`,
      ],
    });
    const unpatched = new PatchedMesh().one('clusters', nodes.client, web);
    expect(patchedMesh.one('clusters', nodes.client, web)).toEqual({ ...unpatched, altStatName: 'y' });
  });

  it('a cluster is removed, and another one is added', () => {
    const patchedMesh = new PatchedMesh({
      patches: [
        `{applyTo: CLUSTER, match: ${clusterMatch}, patch: {operation: REMOVE}}`,
        '{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ADD, value: {name: limiter, type: STATIC}}}',
      ],
    });
    const names = patchedMesh.json('clusters', nodes.client).map(({ name }) => name);
    expect(names).not.toContain(web);
    expect(names.at(-1)).toBe('limiter');
    expect(patchedMesh.json('clusters', nodes.door).map(({ name }) => name)).not.toContain('limiter');
    expect(patchedMesh.problems()).toEqual([undefined, undefined]);
  });

  it('a cluster is not added if its name exists, and the failure is reported', () => {
    const patchedMesh = new PatchedMesh({
      patches: [
        `{applyTo: CLUSTER, patch: {operation: ADD, value: {name: "${web}", type: STATIC}}}`,
        '{applyTo: CLUSTER, patch: {operation: ADD, value: {name: limiter, type: STATIC}}}',
        '{applyTo: CLUSTER, patch: {operation: ADD, value: {name: limiter, type: STRICT_DNS}}}',
      ],
    });
    const clusters = patchedMesh.json('clusters', nodes.client);
    expect(clusters.filter(({ name }) => name === web)).toHaveLength(1);
    expect(clusters.filter(({ name }) => name === 'limiter')).toHaveLength(1);
    expect(patchedMesh.problems()).toEqual([
      `there is already a cluster ${web}`,
      undefined,
      'there is already a cluster limiter',
    ]);
  });

  it('patched clusters record their origins, and unpatched clusters are the same objects', () => {
    const plain = new PatchedMesh();
    const patchedMesh = new PatchedMesh({ patches: [timeout(clusterMatch)] });
    const cluster = patchedMesh.resources('clusters', nodes.client).find(({ name }) => name === web)!;
    expect(originsOf(cluster.message).at(-1)).toEqual({
      key: { kind: 'EnvoyFilter', namespace: 'shop', name: 'filter' },
      path: ['spec', 'configPatches', 0],
    });
    expect(cluster.dependsOn).toContainEqual({ kind: 'EnvoyFilter', namespace: 'shop', name: 'filter' });
    const otherClusters = (mesh: PatchedMesh) => mesh.json('clusters', nodes.client).filter(({ name }) => name !== web);
    expect(otherClusters(patchedMesh)).toEqual(otherClusters(plain));
  });
});

describe('order of cluster patches', () => {
  const web = 'outbound|80||web.test';
  const all = '{cluster: {service: web.test}}';
  const time = (...filters: readonly GivenFilter[]) =>
    new PatchedMesh(...filters).one('clusters', nodes.client, web).connectTimeout;

  it('patches of one object apply in their order, so that the last one takes precedence', () => {
    expect(time({ patches: [timeout(all, 1), timeout(all, 2)] })).toBe('2s');
  });

  it('patches of the root namespace apply before those of the namespace if priorities are equal (istio 49555)', () => {
    const namespaced = { name: 'own', priority: 5, patches: [timeout(all, 1)] };
    const root = { name: 'root', namespace: 'istio-system', priority: 5, patches: [timeout(all, 2)] };
    expect(time(namespaced, root)).toBe('1s');
    expect(time({ ...namespaced, priority: 4 }, root)).toBe('2s');
    expect(time({ ...namespaced, priority: 6 }, root)).toBe('1s');
    expect(time({ ...root, namespace: 'other' })).not.toBe('2s');
  });

  it('patches of a namespace apply by priority, then by age', () => {
    expect(
      time({ name: 'b', priority: 1, patches: [timeout(all, 1)] }, { name: 'a', patches: [timeout(all, 2)] }),
    ).toBe('1s');
    expect(time({ name: 'b', patches: [timeout(all, 1)] }, { name: 'a', patches: [timeout(all, 2)] })).toBe('2s');
  });
});

describe('proxies that a patch matches', () => {
  const patch = (proxy: string): string => timeout(`{proxy: ${proxy}, cluster: {name: outbound|80||web.test}}`);

  it.each<[string, Record<string, string>, string]>([
    ['{proxyVersion: "^1\\\\.2[89]"}', { ISTIO_VERSION: '1.28.3' }, 'applies to'],
    ['{proxyVersion: "^1\\\\.2[89]"}', { ISTIO_VERSION: '1.30.0' }, 'does not apply to'],
    ['{proxyVersion: "28"}', { ISTIO_VERSION: '1.28.3' }, 'applies to'],
    ['{proxyVersion: ".*"}', {}, 'does not apply to'],
    ['{metadata: {TEAM: a}}', { TEAM: 'a', OTHER: 'b' }, 'applies to'],
    ['{metadata: {TEAM: a}}', { TEAM: 'b' }, 'does not apply to'],
    ['{metadata: {TEAM: a, ZONE: b}}', { TEAM: 'a' }, 'does not apply to'],
    ['{proxyVersion: "^1", metadata: {TEAM: a}}', { TEAM: 'a', ISTIO_VERSION: '1.28.0' }, 'applies to'],
  ])('a proxy match $0 $2 the metadata $1', (proxy, metadata, verb) => {
    const clusters = new PatchedMesh({ patches: [patch(proxy)] }).json('clusters', { ...nodes.client, metadata });
    expect(timedOut(clusters)).toEqual(verb === 'applies to' ? ['outbound|80||web.test'] : []);
  });
});
