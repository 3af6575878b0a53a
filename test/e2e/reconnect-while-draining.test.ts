/**
 * A sidecar's inbound listener is replaced, and Envoy reconnects while connections of the previous listener drain, whose routes need the previous
 * cluster.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startLoad } from '../load/load-process.ts';
import { plainKinds, type World } from './changes-without-loss/change-kinds.ts';
import type { HttpBackend } from './features/harness/backends.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { joinDocuments } from './features/harness/gateway-objects.ts';
import { object } from './features/harness/objects.ts';

const addresses = { sotw: '127.0.6.1', delta: '127.0.6.2' } as const;
const proxies = ['sotw', 'delta'] as const;
const drainSeconds = 20;
const inbound = plainKinds.find(({ name }) => name === 'inbound')!;

let mesh: FeatureMesh;
let backend: HttpBackend;
let port: number;

beforeAll(async () => {
  const metadata = { PROXY_CONFIG: { drainDuration: `${drainSeconds}s` } };
  const settings = proxies.map((name) => {
    return [name, { labels: { app: name }, delta: name === 'delta', metadata, roundTripMs: 20 }] as const;
  });
  mesh = await FeatureMesh.start({
    proxies: Object.fromEntries(settings),
    env: { PILOT_XDS_CLUSTER_REMOVAL_DELAY: '1s' },
    envoyArgs: ['--drain-time-s', `${drainSeconds}`],
    explains: false,
  });
  port = await mesh.port();
  backend = await mesh.http('app');
});

afterAll(() => mesh?.stop());

/** The listener's routes lead to a cluster of this generation. */
function configOf(generation: number): string {
  const sidecars = proxies.map((app) =>
    object('networking.istio.io/v1', 'Sidecar', 'shop', app, {
      workloadSelector: { labels: { app } },
      egress: [{ hosts: ['~/*'] }],
      ingress: [
        {
          port: { number: port, name: 'http', protocol: 'HTTP' },
          bind: addresses[app],
          captureMode: 'NONE',
          defaultEndpoint: `127.0.0.1:${backend.port}`,
        },
      ],
    }),
  );
  return joinDocuments(...sidecars, inbound.config(generation, { backend: backend.port } as World));
}

const hasPrevious = async (proxy: (typeof proxies)[number]): Promise<boolean> =>
  (await mesh.envoy(proxy).admin('/clusters')).includes('inbound-0::');

test('the previous cluster stays after a reconnect until its checks are drained, and no request fails', async () => {
  await mesh.apply(configOf(0));
  const clients = proxies.map((name) => ({
    ...{ kind: 'ka' as const, name, count: 20, pauseMs: 300 },
    target: { host: addresses[name], port, authority: 'any.test' },
  }));
  const load = await startLoad({ target: clients[0]!.target, clients, maxDurationMs: 600_000 });
  await mesh.apply(configOf(1));
  mesh.disconnect();
  for (const proxy of proxies) {
    await eventually(`${proxy} has removed the previous cluster`, async () => !(await hasPrevious(proxy)));
  }
  const { byName, total } = await load.stop();
  console.log(`${total} requests`, byName);
  expect(proxies.map((name) => byName[name]?.reasons)).toEqual([{}, {}]);
});
