/** Whatever bytes come to a sidecar find a filter chain: the chains of the virtual inbound listener, in a real Envoy. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { Listener } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { socketAddress } from '../../src/networking/address.ts';
import { Resource } from '../../src/networking/index.ts';
import { inboundPassthroughCluster, virtualInboundListener } from '../../src/networking/names.ts';
import { type AdsStandIn, startAdsStandIn } from '../networking/ads-stand-in.ts';
import { generate, readCase } from '../networking/case.ts';
import { type RealEnvoy, startRealEnvoy } from '../networking/real-envoy.ts';

/** The port in the golden case whose protocol nobody said. */
const sniffedPort = 7000;

/** Keeps what it is told, and says the same to whoever told it. */
class Application {
  readonly heard: Buffer[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk) => {
        this.heard.push(chunk);
        socket.write(chunk);
      });
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

describe.each([
  ['a port that no service describes', 'virtualInbound', inboundPassthroughCluster],
  ['a port of which nobody said the protocol', `0.0.0.0_${sniffedPort}`, `inbound|${sniffedPort}||`],
])('%s', (_, chainName, clusterName) => {
  let application: Application;
  let ads: AdsStandIn;
  let envoy: RealEnvoy;
  let port: number;

  beforeAll(async () => {
    application = new Application();
    const golden = readCase('sidecar-sniffed');
    const virtual = generate(golden).listeners.find(({ name }) => name === virtualInboundListener)!;
    const target = toApplication(clusterName, await application.listen());
    port = await freePort();
    ads = await startAdsStandIn([at(virtual, port, chainName), target, ...others(golden, clusterName)]);
    envoy = await startRealEnvoy(ads.port, golden.proxy);
    await untilListening(envoy, ads);
  });

  afterAll(async () => {
    await envoy?.stop();
    ads?.close();
    application?.close();
  });

  test('hands raw bytes to the application', async () => {
    expect(await exchange(port, 'raw bytes\n')).toBe('raw bytes\n');
  });

  test('reads requests', async () => {
    application.heard.length = 0;
    await exchange(port, 'GET /read HTTP/1.1\r\nhost: any.test\r\n\r\n');
    const heard = Buffer.concat(application.heard).toString();
    expect(heard).toContain('GET /read HTTP/1.1');
    expect(heard).toContain('x-request-id: ');
  });

  test('hands TLS to the application as it is', async () => {
    application.heard.length = 0;
    const client = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
    client.on('error', () => client.destroy());
    await until(() => application.heard.length > 0);
    client.destroy();
    // A record of type handshake.
    expect(application.heard[0]?.[0]).toBe(0x16);
  });
});

/** The virtual listener where nothing is redirected: connections come to its own port, which counts as theirs. */
function at(resource: Resource, port: number, chainName: string): Resource {
  const listener = resource.message as Listener;
  listener.address = socketAddress('127.0.0.1', port);
  for (const { name, filterChainMatch } of listener.filterChains) {
    if (name === chainName && filterChainMatch?.destinationPort !== undefined) filterChainMatch.destinationPort = port;
  }
  return resource;
}

/** The cluster, wherever it led, to the application. */
function toApplication(name: string, port: number): Resource {
  const address = socketAddress('127.0.0.1', port);
  const cluster = create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: 'endpoint', value: { address } } }] }],
    },
  });
  return new Resource(name, ClusterSchema, cluster);
}

function others(golden: Parameters<typeof generate>[0], clusterName: string): Resource[] {
  const { clusters, endpoints } = generate(golden);
  return [...clusters.filter(({ name }) => name !== clusterName), ...endpoints];
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

async function untilListening(envoy: RealEnvoy, ads: AdsStandIn): Promise<void> {
  await until(async () => {
    expect(ads.refusals).toEqual([]);
    return (await envoy.admin('/stats')).includes('listener_manager.total_listeners_active: 1');
  });
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('waited for 15 s');
    await sleep(20);
  }
}

/** What comes back first; rejects when nothing does. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  try {
    return await new Promise<string>((resolve, reject) => {
      socket.on('data', (chunk) => resolve(chunk.toString()));
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('closed without an answer')));
      socket.setTimeout(10_000, () => reject(new Error('no answer in 10 s')));
    });
  } finally {
    socket.destroy();
  }
}
