/** Runs the virtual inbound listener of a proxy in a real Envoy, without redirection, in front of one application. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { Cluster_DiscoveryType, ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { Listener } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { EnvoyResource } from '../../src/networking/index.ts';
import { socketAddress } from '../../src/networking/messages/address.ts';
import { virtualInboundListener } from '../../src/networking/traffic/resource-names.ts';
import { defaultDeadlineMs } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type RealEnvoy, startRealEnvoy } from './ads-envoy.ts';
import { type AdsStandIn, startAdsStandIn } from './ads-stand-in.ts';
import { type GoldenCase, generate, readCase } from './case.ts';

/** Records received data and echoes it. */
export class Application {
  readonly received: Buffer[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk) => {
        this.received.push(chunk);
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

/** Selects the filter chains for the connections of a test. */
export interface InboundPlace {
  /** A proxy and its mesh, or the name of a golden case. */
  readonly of: string | Pick<GoldenCase, 'proxy' | 'shape' | 'push'>;
  /** The port whose chains to use. Default: the chains for ports without separate chains. */
  readonly port?: number;
  /** Cluster of the connections. */
  readonly cluster: string;
  /** Secrets that the agent would serve. */
  readonly secrets?: readonly EnvoyResource[];
}

export interface InboundListener {
  readonly port: number;
  readonly application: Application;
  stop(): Promise<void>;
}

export async function startInboundListener(inboundPlace: InboundPlace): Promise<InboundListener> {
  const application = new Application();
  const golden = typeof inboundPlace.of === 'string' ? readCase(inboundPlace.of) : inboundPlace.of;
  const { clusters, endpoints, listeners } = generate(golden);
  const virtual = listeners.find(({ name }) => name === virtualInboundListener)!;
  const [port] = (await freePorts(1)) as [number];
  const target = toApplication(inboundPlace.cluster, await application.listen());
  const otherResources = [
    ...clusters.filter(({ name }) => name !== inboundPlace.cluster),
    ...endpoints,
    ...(inboundPlace.secrets ?? []),
  ];
  const ads = await startAdsStandIn([at(virtual, port, inboundPlace.port), target, ...otherResources]);
  const envoy = await startRealEnvoy(ads.port, golden.proxy);
  const stop = async (): Promise<void> => {
    await envoy.stop();
    ads.close();
    application.close();
  };
  try {
    await untilListening(envoy, ads, port);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, application, stop };
}

/** Moves the listener to a port that the chains match like `chainPort`. */
function at(resource: EnvoyResource, port: number, chainPort: number | undefined): EnvoyResource {
  const listener = resource.message as Listener;
  listener.address = socketAddress('127.0.0.1', port);
  // Preserving the source address requires privileges.
  listener.transparent = false as never;
  listener.listenerFilters = listener.listenerFilters.filter(({ name }) => !name.endsWith('original_src'));
  for (const { filterChainMatch } of listener.filterChains) {
    if (chainPort !== undefined && filterChainMatch?.destinationPort === chainPort)
      filterChainMatch.destinationPort = port;
  }
  for (const { filterDisabled } of listener.listenerFilters)
    if (chainPort !== undefined) moveRule(filterDisabled?.rule, chainPort, port);
  return resource;
}

type Rule = NonNullable<Listener['listenerFilters'][number]['filterDisabled']>['rule'];

function moveRule(rule: Rule | undefined, from: number, to: number): void {
  if (rule?.case === 'destinationPortRange' && rule.value.start === from) {
    rule.value.start = to;
    rule.value.end = to + 1;
  }
  if (rule?.case === 'notMatch') moveRule(rule.value.rule, from, to);
  if (rule?.case === 'orMatch') for (const one of rule.value.rules) moveRule(one.rule, from, to);
}

/** A cluster of this name that connects to the application. */
function toApplication(name: string, port: number): EnvoyResource {
  const address = socketAddress('127.0.0.1', port);
  const cluster = create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: 'endpoint', value: { address } } }] }],
    },
  });
  return new EnvoyResource(name, ClusterSchema, cluster);
}

/** Envoy counts a listener as active before its workers accept connections. */
async function untilListening(envoy: RealEnvoy, ads: AdsStandIn, port: number): Promise<void> {
  await waitUntil(async () => {
    expect(ads.refusals).toEqual([]);
    return (await envoy.admin('/stats')).includes('listener_manager.total_listeners_active: 1');
  });
  await waitUntil(() => accepts(port));
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

export async function waitUntil(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + defaultDeadlineMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited for ${defaultDeadlineMs} ms`);
    await sleep(20);
  }
}

/** The first received data. Rejects if the connection ends without data. */
export async function exchange(socket: Socket, text: string): Promise<string> {
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

export function plain(port: number): Socket {
  return connect(port, '127.0.0.1');
}
