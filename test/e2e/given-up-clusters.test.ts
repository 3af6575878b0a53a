/** The control plane gives up a cluster whose certificate never arrives; later changes apply as usual. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { awaitsSecret } from './features/harness/awaits-secret.ts';
import type { HttpBackend } from './features/harness/backends.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { joinDocuments } from './features/harness/gateway-objects.ts';
import { destinationRule, gateway, serviceEntry, virtualService } from './features/harness/objects.ts';
import { sendRequest } from './features/harness/requests.ts';

const proxies = ['sotw', 'delta'] as const;
const [broken, intact] = ['broken.shop.test', 'intact.shop.test'];
let mesh: FeatureMesh;
let backend: HttpBackend;
let ports: Record<(typeof proxies)[number], number>;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      sotw: { type: 'router', labels: { edge: 'sotw' } },
      delta: { type: 'router', labels: { edge: 'delta' }, delta: true },
    },
    env: { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '1s' },
    explains: false,
  });
  ports = await mesh.ports(...proxies);
  backend = await mesh.http('shop');
  await mesh.apply({
    'gateways.yaml': gateways(),
    'broken.yaml': shop(broken, 'v1'),
    'intact.yaml': shop(intact, 'v1'),
  });
});

afterAll(() => mesh?.stop());

const gateways = (): string =>
  joinDocuments(
    ...proxies.map((name) =>
      gateway(name, { edge: name }, [{ port: ports[name], protocol: 'HTTP', hosts: ['*.shop.test'] }]),
    ),
  );

/** A service whose routes lead to its only subset. Envoy acknowledges the cluster after it has resolved the host name. */
function shop(host: string, subset: string, rule: object = {}): string {
  return joinDocuments(
    serviceEntry(host, { port: 80, backends: [backend], spec: { resolution: 'DNS' } }).replaceAll(
      `address: ${backend.address}`,
      'address: localhost',
    ),
    destinationRule(host, { subsets: [{ name: subset, labels: { version: 'shop' } }], ...rule }),
    virtualService(host, {
      gateways: [...proxies],
      http: [{ headers: { response: { set: { 'x-subset': subset } } }, route: [{ destination: { host, subset } }] }],
    }),
  );
}

const subsetOf = async (proxy: (typeof proxies)[number], host: string): Promise<unknown> =>
  (await sendRequest({ port: ports[proxy], host, retryForMs: 0 })).headers['x-subset'];

const warming = (proxy: string): Promise<number> => mesh.envoy(proxy).stat('cluster_manager.warming_clusters');

async function abandoned(): Promise<number> {
  return Number(/^pilot_xds_abandoned_clusters_total (\d+)$/m.exec(await mesh.page('/metrics'))?.[1] ?? 0);
}

test('Envoy acknowledges clusters again after one is abandoned, and changes of other clusters are not delayed', async () => {
  mesh.write('broken.yaml', joinDocuments(shop(broken, 'v2'), awaitsSecret(`outbound|80|v2|${broken}`)));
  await eventually(
    'each Envoy warms the cluster',
    async () => Math.min(...(await Promise.all(proxies.map(warming)))) === 1,
  );
  await eventually(
    'no Envoy warms a cluster',
    async () => Math.max(...(await Promise.all(proxies.map(warming)))) === 0,
  );
  expect(await abandoned()).toBe(proxies.length);
  const previousPage = await mesh.page('/debug/proxyz');
  expect(previousPage).toContain(`"givenUp":["outbound|80|v2|${broken}"]`);
  // Without the certificate, requests fail instead of being sent without TLS.
  for (const proxy of proxies) {
    const { status, body } = await sendRequest({ port: ports[proxy], host: broken, retryForMs: 0 });
    expect([status, body]).toEqual([503, expect.stringContaining('remote connection failure')]);
  }
  for (const subset of ['v2', 'v3']) {
    mesh.write('intact.yaml', shop(intact, subset));
    for (const proxy of proxies) {
      await eventually(`${proxy} routes to ${subset}`, async () => (await subsetOf(proxy, intact)) === subset);
    }
  }
  expect(await abandoned()).toBe(proxies.length);
  // The next version waits for the same certificate, while Envoy uses the version that was given up.
  const longer = { trafficPolicy: { connectionPool: { tcp: { connectTimeout: '7s' } } } };
  mesh.write('broken.yaml', joinDocuments(shop(broken, 'v2', longer), awaitsSecret(`outbound|80|v2|${broken}`)));
  await eventually('the next form is given up', async () => (await abandoned()) === 2 * proxies.length);
  await eventually(
    'no Envoy warms a cluster',
    async () => Math.max(...(await Promise.all(proxies.map(warming)))) === 0,
  );
  await mesh.apply({
    'gateways.yaml': gateways(),
    'broken.yaml': shop(broken, 'v3'),
    'intact.yaml': shop(intact, 'v3'),
  });
  for (const proxy of proxies) expect(await subsetOf(proxy, broken)).toBe('v3');
  await eventually('nothing is given up any more', async () => !(await mesh.page('/debug/proxyz')).includes('givenUp'));
});
