/** Several targets and a server of grpc-go over the xDS proxy of one agent: grpc-go opens a stream for each. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HealthServer } from '../grpc/health-server.ts';
import { PeerClient, PeerServer, writeBootstrap } from '../grpc/peers.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type RunningXdsProxy, startXdsProxy, stopXdsProxies } from '../harness/xds-proxy.ts';

const names = ['a', 'b', 'c', 'own'];
const backends = new Map<string, HealthServer>();
let plane: ControlPlane;
let proxy: RunningXdsProxy;
let server: PeerServer;
let client: PeerClient;
let port: number;
let xdsPort: number;

function service(name: string, endpoint: { address: string; port: number }): string {
  return JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'ServiceEntry', metadata: { name, namespace: 'shop' } },
    spec: {
      ...{ hosts: [`${name}.shop.svc.cluster.local`], location: 'MESH_INTERNAL', resolution: 'STATIC' },
      ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
      endpoints: [{ address: endpoint.address, ports: { grpc: endpoint.port } }],
    },
  });
}

const call = (name: string) => client.call({ target: `xds:///${name}.shop:7070` });

beforeAll(async () => {
  [port = 0, xdsPort = 0] = await freePorts(2);
  plane = await ControlPlane.serving(
    { grpcAddr: `127.0.0.1:${xdsPort}` },
    { 'own.yaml': service('own', { address: '127.0.0.3', port }) },
  );
  for (const name of ['a', 'b', 'c']) {
    const backend = await HealthServer.start(name);
    backends.set(name, backend);
    plane.write(`${name}.yaml`, service(name, { address: '127.0.0.1', port: backend.port }));
  }
  proxy = await startXdsProxy(`127.0.0.1:${xdsPort}`, { proxyless: true });
  const node = {
    id: 'sidecar~127.0.0.3~own.shop~shop.svc.cluster.local',
    metadata: { GENERATOR: 'grpc', NAMESPACE: 'shop' },
  };
  const bootstrap = writeBootstrap(plane.root, { serverUri: `unix://${proxy.socket}`, node });
  server = await PeerServer.start(`127.0.0.3:${port}`, 'own', bootstrap);
  client = await PeerClient.start('go', bootstrap);
  await server.serving();
}, 600_000);

afterAll(async () => {
  await Promise.all([server?.stop(), client?.stop()]);
  stopXdsProxies();
  await stopControlPlanes();
  for (const backend of backends.values()) backend.stop();
});

it('every target and the server have separate xDS streams, and no stream ends another one', async () => {
  for (const name of names) {
    await eventually(`${name} responds`, async () => (await call(name)).backend === name);
  }
  expect(proxy.events('downstream.opened').length).toBeGreaterThanOrEqual(names.length);
  expect(proxy.events('stream.supersede')).toEqual([]);
});

it('every xDS stream receives changes', async () => {
  const movedServer = await HealthServer.start('moved');
  for (const name of ['a', 'b', 'c']) {
    plane.write(`${name}.yaml`, service(name, { address: '127.0.0.1', port: movedServer.port }));
  }
  for (const name of ['a', 'b', 'c']) {
    await eventually(`${name} has moved`, async () => (await call(name)).backend === 'moved');
  }
  expect(proxy.events('stream.supersede')).toEqual([]);
  backends.set('moved', movedServer);
});

it('no call fails while the control plane restarts, and later changes arrive', async () => {
  const freshServer = await HealthServer.start('fresh');
  backends.set('fresh', freshServer);
  const movedServer = backends.get('moved')!;
  let [failedCalls, callCount, isOver] = [0, 0, false];
  const calling = (async () => {
    for (; !isOver; callCount++) if ((await call('a')).code !== 'OK') failedCalls++;
  })();
  await plane.stop();
  const files = Object.fromEntries(
    ['a', 'b', 'c'].map((name) => [`${name}.yaml`, service(name, { address: '127.0.0.1', port: movedServer.port })]),
  );
  const ownService = service('own', { address: '127.0.0.3', port });
  plane = await ControlPlane.serving({ grpcAddr: `127.0.0.1:${xdsPort}` }, { ...files, 'own.yaml': ownService });
  plane.write('a.yaml', service('a', { address: '127.0.0.1', port: freshServer.port }));
  await eventually('a change arrives', () => freshServer.calls > 0);
  await eventually('several calls are complete', () => callCount > 10);
  isOver = true;
  await calling;
  expect(failedCalls).toBe(0);
});
