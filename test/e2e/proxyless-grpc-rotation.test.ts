/**
 * gRPC clients of many targets over one agent: no call fails while certificates are renewed and while the control plane or the agent restarts
 * (issue 39: ten targets, 20 rotations, 5 restarts).
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AgentMesh } from '../grpc/agent-mesh.ts';
import { type Language, PeerClient, PeerServer } from '../grpc/peers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { sized } from '../harness/size-of-run.ts';

interface Size {
  readonly targets: number;
  readonly rotations: number;
  readonly restarts: number;
  readonly languages: readonly Language[];
  /** How the agent is stopped before each restart. */
  readonly agentSignals: readonly ('SIGKILL' | 'SIGTERM')[];
}

const { targets, rotations, restarts, languages, agentSignals } = sized<Size>({
  short: { targets: 3, rotations: 2, restarts: 1, languages: ['go'], agentSignals: ['SIGKILL'] },
  full: { targets: 10, rotations: 20, restarts: 5, languages: ['go', 'node'], agentSignals: ['SIGKILL', 'SIGTERM'] },
});
const podIp = '127.0.0.5';
const hosts = Array.from({ length: targets }, (_, index) => `t${index}.shop.svc.cluster.local`);
const servers: { readonly name: string; readonly port: number; readonly server: PeerServer }[] = [];
const load: Load[] = [];
let mesh: AgentMesh;

function object(kind: string, group: string, name: string, spec: object): string {
  const metadata = { name, namespace: 'shop' };
  return `${JSON.stringify({ apiVersion: `${group}.istio.io/v1`, kind, metadata, spec })}\n---\n`;
}

/** All targets lead to one server. */
function services(port: number): string {
  return hosts
    .map((host) =>
      object('ServiceEntry', 'networking', host.split('.')[0]!, {
        ...{ hosts: [host], location: 'MESH_INTERNAL', resolution: 'STATIC', subjectAltNames: [AgentMesh.identity] },
        ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
        endpoints: [{ address: podIp, ports: { grpc: port } }],
      }),
    )
    .join('');
}

/** Keeps the listeners of both servers when the targets move. */
const ownServices = (ports: readonly number[]): string =>
  ports
    .map((port, index) =>
      object('ServiceEntry', 'networking', `own-${index}`, {
        ...{ hosts: [`own-${index}.shop.svc.cluster.local`], location: 'MESH_INTERNAL', resolution: 'STATIC' },
        ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
        endpoints: [{ address: podIp, ports: { grpc: port } }],
      }),
    )
    .join('');

/** Calls all targets repeatedly. */
class Load {
  readonly failures: string[] = [];
  readonly client: PeerClient;
  /** The server that last responded for each target. */
  readonly backends = new Map<string, string>();
  callCount = 0;
  #isOver = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(client: PeerClient) {
    this.client = client;
  }

  async round(): Promise<void> {
    const calls = hosts.map(async (host) => {
      const { code, message, backend } = await this.client.call({ target: `xds:///${host}:7070`, secure: true });
      this.callCount++;
      if (code.toUpperCase() !== 'OK') this.failures.push(`${host}: ${code}: ${message}`);
      this.backends.set(host, backend ?? code);
    });
    await Promise.all(calls);
  }

  begin(): void {
    this.#loop = (async () => {
      while (!this.#isOver) await this.round();
    })();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
    await this.client.stop();
  }
}

const serial = (): string =>
  new X509Certificate(readFileSync(join(mesh.certificates, 'cert-chain.pem'))).serialNumber.toLowerCase();

/** Serial numbers of all certificates written to disk. */
const serials = new Set<string>();

async function rotated(times: number): Promise<void> {
  for (let rotation = 0; rotation < times; rotation++) {
    const { size } = serials;
    await eventually('the certificate is renewed', () => serials.add(serial()).size > size, {
      hopeless: () => mesh.agent.hopeless(),
    });
  }
}

let serverIndex = 0;
/** Moves all targets to the other server, and waits until each target uses it. */
async function moveTargets(): Promise<void> {
  const { name, port } = servers[++serverIndex % servers.length]!;
  mesh.write('services.yaml', services(port));
  for (const one of load) {
    await eventually(`all targets respond from ${name}`, () => hosts.every((host) => one.backends.get(host) === name));
  }
}

/** Checks that a client started now connects with the current certificates. */
async function freshClientCalls(): Promise<void> {
  const freshLoad = new Load(await PeerClient.start('go', mesh.bootstrap));
  await freshLoad.round();
  await freshLoad.client.stop();
  expect(freshLoad.failures).toEqual([]);
}

beforeAll(async () => {
  const ports = await freePorts(2);
  mesh = await AgentMesh.start({
    // Half of the lifetime must exceed a restart of the control plane, which takes more than 10 s on a busy machine.
    ...{ podIp, secretTtl: '40s' },
    files: {
      'services.yaml': services(ports[0]!),
      'own.yaml': ownServices(ports),
      'peers.yaml': object('PeerAuthentication', 'security', 'all', { mtls: { mode: 'STRICT' } }),
      'rule.yaml': object('DestinationRule', 'networking', 'all', {
        ...{ host: '*.shop.svc.cluster.local', trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
      }),
    },
  });
  mesh.grantToken();
  mesh.startAgent();
  await mesh.ready();
  serials.add(serial());
  for (const [index, port] of ports.entries()) {
    const name = `server-${index}`;
    servers.push({ name, port, server: await PeerServer.start(`${podIp}:${port}`, name, mesh.bootstrap) });
  }
  for (const { server } of servers) await server.serving();
  for (const language of languages) load.push(new Load(await PeerClient.start(language, mesh.bootstrap)));
  for (const one of load) {
    await one.round();
    one.begin();
  }
}, 600_000);

afterAll(async () => {
  await Promise.all(load.map((one) => one.end()));
  await Promise.all(servers.map(({ server }) => server.stop()));
  await mesh?.stop();
});

const listFailures = (): string[] => load.flatMap(({ failures }) => failures.slice(0, 10));

it(`no call to ${targets} targets fails in ${rotations} rotations and ${restarts} restarts of the control plane`, async () => {
  for (let restart = 0; restart < restarts; restart++) {
    await rotated(Math.ceil(rotations / restarts));
    await freshClientCalls();
    // Alternates between kill and termination: only termination ends streams with a status.
    await mesh.discovery.stop({ signal: restart % 2 === 0 ? 'SIGKILL' : 'SIGTERM' });
    await mesh.startDiscovery();
    await moveTargets();
    expect(listFailures()).toEqual([]);
  }
  expect(serials.size).toBeGreaterThan(rotations);
  await freshClientCalls();
  for (const { callCount } of load) expect(callCount).toBeGreaterThan(10 * targets);
}, 600_000);

it.each(agentSignals)(
  'no call fails while the agent is restarted by %s, and its clients receive later changes',
  async (signal) => {
    const roundsBefore = load.map(({ callCount }) => callCount);
    await mesh.agent.stop({ signal });
    mesh.startAgent();
    await mesh.ready();
    await moveTargets();
    await rotated(1);
    await freshClientCalls();
    expect(listFailures()).toEqual([]);
    for (const [index, { callCount }] of load.entries()) expect(callCount).toBeGreaterThan(roundsBefore[index]!);
  },
  600_000,
);
