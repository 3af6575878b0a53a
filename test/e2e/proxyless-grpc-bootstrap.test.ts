/** pilot-agent without an Envoy next to a server and a client of grpc-go: bootstrap file, readiness, mutual TLS, renewed certificates. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AgentMesh } from '../grpc/agent-mesh.ts';
import { type CallOutcome, PeerClient, PeerServer } from '../grpc/peers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';

const host = 'echo.shop.svc.cluster.local';
const { identity } = AgentMesh;
/** The control plane finds the workload by its address. */
const podIp = '127.0.0.4';

let mesh: AgentMesh;
let server: PeerServer;
let client: PeerClient;
let serverPort: number;

function object(kind: string, group: string, spec: object): string {
  return JSON.stringify({
    ...{ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name: 'echo', namespace: 'shop' } },
    spec,
  });
}

const objects = (): Record<string, string> => ({
  'service.yaml': object('ServiceEntry', 'networking', {
    ...{ hosts: [host], location: 'MESH_INTERNAL', resolution: 'STATIC', subjectAltNames: [identity] },
    ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
    endpoints: [{ address: podIp, ports: { grpc: serverPort } }],
  }),
  'peers.yaml': object('PeerAuthentication', 'security', { mtls: { mode: 'STRICT' } }),
  'rule.yaml': object('DestinationRule', 'networking', {
    ...{ host, trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
  }),
});

const call = (from: PeerClient): Promise<CallOutcome> => from.call({ target: `xds:///${host}:7070`, secure: true });

beforeAll(async () => {
  [serverPort = 0] = await freePorts(1);
  // Renewed every 4 s, 36 s before they expire.
  mesh = await AgentMesh.start({ podIp, files: objects(), secretTtl: '40s' });
  mesh.startAgent();
}, 600_000);

afterAll(async () => {
  await Promise.all([server?.stop(), client?.stop()]);
  await mesh?.stop();
});

it('the agent is not ready and writes no bootstrap file before it has certificates', async () => {
  await eventually('the authority has rejected the token', () =>
    /certificate not available, will retry/.test(mesh.agent.output()),
  );
  await eventually('the reason is in the log', async () => {
    expect(await mesh.readiness()).toBe(503);
    return mesh.agent.output().includes('gRPC bootstrap file not written yet');
  });
  expect(existsSync(mesh.bootstrap)).toBe(false);
  mesh.grantToken();
  await eventually('the file is there', () => existsSync(mesh.bootstrap));
  for (const name of ['key.pem', 'cert-chain.pem', 'root-cert.pem']) {
    expect(existsSync(join(mesh.certificates, name)), name).toBe(true);
  }
  await eventually('the agent is ready', async () => (await mesh.readiness()) === 200);
});

it('a gRPC server and client start from the bootstrap file and use mutual TLS', async () => {
  server = await PeerServer.start(`${podIp}:${serverPort}`, 'echo', mesh.bootstrap);
  client = await PeerClient.start('go', mesh.bootstrap);
  await server.serving();
  await eventually('a call succeeds', async () => (await call(client)).code === 'OK');
  expect(await call(client)).toMatchObject({ backend: 'echo', caller: identity, peer: identity });
});

it('new connections use the certificates that the agent renews, and no call fails', async () => {
  const first = (await call(client)).serial;
  const bootstrapText = readFileSync(mesh.bootstrap, 'utf8');
  let [failedCalls, callCount, isOver] = [0, 0, false];
  const calling = (async () => {
    for (; !isOver; callCount++) if ((await call(client)).code !== 'OK') failedCalls++;
  })();
  await eventually('the server has a renewed certificate', async () => {
    const freshClient = await PeerClient.start('go', mesh.bootstrap);
    const { serial, code, message } = await call(freshClient);
    await freshClient.stop();
    if (code !== 'OK') throw new Error(`${code}: ${message}`);
    return serial !== first;
  });
  isOver = true;
  await calling;
  expect({ failed: failedCalls }).toEqual({ failed: 0 });
  expect(callCount).toBeGreaterThan(10);
  expect(readFileSync(mesh.bootstrap, 'utf8')).toBe(bootstrapText);
});
