/**
 * While a cluster warms without end, a real Envoy reconnects, so the control plane gives the cluster up. Envoy replaces each cluster that it receives
 * again, which resets pending authorization checks: the cluster of the authorization service must not be sent again.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { awaitsSecret } from './features/harness/awaits-secret.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { joinDocuments } from './features/harness/gateway-objects.ts';
import { destinationRule, gateway, object, serviceEntry, virtualService } from './features/harness/objects.ts';
import { sendRequest } from './features/harness/requests.ts';

const proxies = ['sotw', 'delta'] as const;
const [guarded, broken, authorizer] = ['guarded.shop.test', 'broken.shop.test', 'authz.shop.test'];
const brokenCluster = `outbound|80||${broken}`;
const provider = { name: 'authz', envoyExtAuthzHttp: { service: authorizer, port: 80, timeout: '60s' } };
let mesh: FeatureMesh;

beforeAll(async () => {
  // Enables workload certificates: each cluster fetches them, which can delay Envoy's acknowledgement.
  const identity = 'spiffe://cluster.local/ns/shop/sa/edge';
  mesh = await FeatureMesh.start({
    proxies: {
      sotw: { type: 'router', labels: { edge: 'sotw' }, identity, roundTripMs: 1 },
      delta: { type: 'router', labels: { edge: 'delta' }, identity, roundTripMs: 1, delta: true },
    },
    env: { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '3s' },
    meshConfig: { extensionProviders: [provider] },
    explains: false,
  });
});

afterAll(() => mesh?.stop());

interface ProxyState {
  readonly connectionId: string;
  readonly types: readonly { readonly givenUp?: readonly string[] }[];
}

const connections = async (): Promise<ProxyState[]> => JSON.parse(await mesh.page('/debug/proxyz')) as ProxyState[];

const sum = async (stat: string): Promise<number> => {
  const values = await Promise.all(proxies.map((name) => mesh.envoy(name).stat(stat)));
  return values.reduce((total, value) => total + value, 0);
};

test('pending authorization checks survive when another cluster is abandoned after a reconnect', async () => {
  const heldResponses: (() => void)[] = [];
  const [shop, authz] = await Promise.all([
    mesh.http('shop'),
    mesh.http('authz', { respond: (_request, response) => void heldResponses.push(() => response.end()) }),
  ]);
  const ports = await mesh.ports(...proxies);
  const files = {
    'gateways.yaml': joinDocuments(
      ...proxies.map((name) =>
        gateway(name, { edge: name }, [{ port: ports[name], protocol: 'HTTP', hosts: ['*.shop.test'] }]),
      ),
      ...[guarded, broken].map((host) => serviceEntry(host, { port: 80, backends: [shop] })),
      // The patch merges into the only transport socket.
      destinationRule(broken, { trafficPolicy: { tls: { mode: 'DISABLE' } } }),
      serviceEntry(authorizer, { port: 80, backends: [authz] }),
      ...[guarded, broken].map((host) =>
        virtualService(host, { gateways: [...proxies], http: [{ route: [{ destination: { host } }] }] }),
      ),
      object('security.istio.io/v1', 'AuthorizationPolicy', 'shop', 'custom', {
        action: 'CUSTOM',
        provider: { name: 'authz' },
        rules: [{}],
      }),
    ),
  };
  await mesh.apply(files);
  const modified = await sum('cluster_manager.cluster_modified');
  mesh.write('filter.yaml', awaitsSecret(brokenCluster));
  await eventually('each Envoy warms the cluster', async () => (await sum('cluster_manager.warming_clusters')) === 2);
  const previousConnections = new Set((await connections()).map(({ connectionId }) => connectionId));
  mesh.disconnect();
  const responses = proxies.map((name) => sendRequest({ port: ports[name], host: guarded }));
  await eventually('the service is asked', () => heldResponses.length === proxies.length);
  const givenUpLists = await eventually('clusters are given up', async () => {
    const newConnections = (await connections()).filter(({ connectionId }) => !previousConnections.has(connectionId));
    const lists = newConnections.map(({ types }) => types.flatMap((type) => type.givenUp ?? []));
    return lists.filter((list) => list.length > 0).length === proxies.length && lists;
  });
  await eventually('no Envoy warms a cluster', async () => (await sum('cluster_manager.warming_clusters')) === 0);
  for (const release of heldResponses) release();
  expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
  expect(givenUpLists).toEqual(proxies.map(() => [brokenCluster]));
  // Only configuration changes modified the cluster.
  expect((await sum('cluster_manager.cluster_modified')) - modified).toBeLessThanOrEqual(2 * proxies.length);
});
