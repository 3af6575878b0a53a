import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, createServer, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { adminAt, envoyBinary, freePort, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { createAdminClient } from './admin-client.ts';
import { countRequests, requestsInFlight } from './requests-in-flight.ts';

const ownPorts = [15_021, 15_090];

const lines = (figures: Readonly<Record<string, number>>): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');

const listeners = (figures: Readonly<Record<string, number>>): string =>
  lines(
    Object.fromEntries(Object.entries(figures).map(([at, count]) => [`listener.${at}.downstream_cx_active`, count])),
  );

/** Connections that each sample contains: one of a probe, two of the agent, and internal ones. */
const internal = listeners({ '0.0.0.0_15021': 1, admin: 2, 'admin.main_thread': 2, envoy_internal_inner_1: 4 });

const sample = {
  '0.0.0.0_8443': 6,
  '0.0.0.0_9093': 8,
  '10.112.32.70_9043': 1,
  '10.112.40.186_2181': 1,
  '10.112.43.239_9043': 2,
  '10.112.49.68_9043': 1,
};

describe('active requests of an Envoy (S17)', () => {
  test('include open connections without HTTP', () => {
    expect(requestsInFlight(listeners(sample) + internal, ownPorts)).toBe(19);
  });

  // Istio would count 19 connections here, so a stop would wait for idle clients.
  test('include HTTP connections only with an active request', () => {
    const http = (requests: number): string =>
      lines({
        'http.inbound_0.0.0.0_8443;.downstream_cx_active': 6,
        'http.inbound_0.0.0.0_8443;.downstream_rq_active': requests,
        'http.outbound_0.0.0.0_9093;.downstream_cx_active': 8,
        'http.outbound_0.0.0.0_9093;.downstream_rq_active': 0,
      });
    const otherListeners = 5;
    expect(requestsInFlight(listeners(sample) + http(0) + internal, ownPorts)).toBe(otherListeners);
    expect(requestsInFlight(listeners(sample) + http(3) + internal, ownPorts)).toBe(otherListeners + 3);
  });

  test('exclude probes, scrapes and connections to the admin interface and internal listeners', () => {
    const none = Object.fromEntries(Object.keys(sample).map((at) => [at, 0]));
    expect(requestsInFlight(listeners(none) + internal, ownPorts)).toBe(0);
    const http = lines({
      ...{ 'http.admin.downstream_rq_active': 1, 'http.admin.downstream_cx_active': 2 },
      ...{ 'http.agent.downstream_rq_active': 1, 'http.stats.downstream_rq_active': 1 },
    });
    expect(requestsInFlight(internal + http, ownPorts)).toBe(0);
  });

  test('exclude per-thread statistics of listeners', () => {
    const requestCounts = { '0.0.0.0_80': 3, '0.0.0.0_80.worker_0': 1, '0.0.0.0_80.worker_1': 2 };
    expect(requestsInFlight(listeners(requestCounts), ownPorts)).toBe(3);
  });

  test('include listeners with IPv6 addresses', () => {
    expect(requestsInFlight(listeners({ '[__]_15021': 1, '[__1]_8080': 2 }), ownPorts)).toBe(2);
  });

  test('are at least the value of the request gauges, although Envoy reads its gauges at different times', () => {
    const http = {
      'http.outbound_0.0.0.0_80;.downstream_cx_active': 2,
      'http.outbound_0.0.0.0_80;.downstream_rq_active': 1,
    };
    expect(requestsInFlight(listeners({ '0.0.0.0_80': 1 }) + lines(http), ownPorts)).toBe(1);
  });

  test('are -1 if there are no statistics', () => {
    expect(requestsInFlight('', ownPorts)).toBe(-1);
  });
});

function count(port: number, ports: readonly number[] = []): Promise<number> {
  const logic = countRequests({ adminAt, ownPorts: ports });
  return toPromise(createActor(logic, { input: { adminPort: port } }).start());
}

test('reading active requests fails if no process listens on the admin port', async () => {
  await expect(count(await freePort())).rejects.toThrow('connection refused');
});

test('reading active requests fails if the response status is not 200', async () => {
  const server = createServer((_, response) => response.writeHead(500).end());
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  await expect(count((server.address() as AddressInfo).port)).rejects.toThrow('status 500');
});

test('reading active requests fails if there is no response within 2 s', async () => {
  const server = createServer(() => {});
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  await expect(count((server.address() as AddressInfo).port)).rejects.toThrow('no response within 2000 ms');
});

/** A service that responds on demand and accepts upgrades. */
async function slowService(): Promise<{ port: number; respondToAll: () => void }> {
  const waitingResponses: ServerResponse[] = [];
  const server = createServer((_, response) => void waitingResponses.push(response));
  server.on('upgrade', (_, socket: Socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    respondToAll: () => {
      for (const response of waitingResponses.splice(0)) response.end('done');
    },
  };
}

const at = (port: number): object => ({ socket_address: { address: '127.0.0.1', port_value: port } });

function httpListener(statPrefix: string, port: number): object {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: statPrefix,
    upgrade_configs: [{ upgrade_type: 'websocket' }],
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'service' } }] },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const filters = [{ name: 'envoy.filters.network.http_connection_manager', typed_config }];
  return { name: statPrefix, address: at(port), filter_chains: [{ filters }] };
}

function tcpListener(port: number): object {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
    stat_prefix: 'tcp',
    cluster: 'service',
  };
  const filters = [{ name: 'envoy.filters.network.tcp_proxy', typed_config }];
  return { name: 'tcp', address: at(port), filter_chains: [{ filters }] };
}

/** An Envoy in front of the service, with an HTTP, a TCP and an agent listener. */
async function envoyBefore(service: number): Promise<{ admin: number; http: number; tcp: number; agentPort: number }> {
  const folder = temporaryFolder();
  const [admin, http, tcp, agentPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const file = join(folder.path, 'bootstrap.json');
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: at(service) } }] }];
  const bootstrap = {
    admin: { address: at(admin) },
    static_resources: {
      clusters: [{ name: 'service', load_assignment: { cluster_name: 'service', endpoints } }],
      listeners: [httpListener('outbound_80;', http), tcpListener(tcp), httpListener('agent', agentPort)],
    },
  };
  writeFileSync(file, JSON.stringify(bootstrap));
  const args = ['-c', file, '--disable-hot-restart', '--concurrency', '2', '-l', 'off'];
  const envoy = execa(envoyBinary(), args, { reject: false, stdio: 'ignore' });
  onTestFinished(async () => {
    envoy.kill('SIGKILL');
    await envoy;
    folder[Symbol.dispose]();
  });
  const client = createAdminClient('127.0.0.1', admin);
  while (!(await client.state()).live) await sleep(20);
  return { admin, http, tcp, agentPort };
}

/** A request over a persistent connection. @returns a promise of its response */
function startRequest(port: number): { completed: Promise<void>; close: () => void } {
  const agent = new Agent({ keepAlive: true });
  const outgoing = request({ host: '127.0.0.1', port, agent });
  outgoing.end();
  onTestFinished(() => agent.destroy());
  const completed = once(outgoing, 'response').then(async ([response]) => {
    response.resume();
    await once(response, 'end');
  });
  completed.catch(() => {});
  return { completed, close: () => agent.destroy() };
}

async function openSocket(port: number, firstWords = ''): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (firstWords !== '') {
    socket.write(firstWords);
    await once(socket, 'data');
  }
  return socket;
}

async function settlesAt(expected: number, readCount: () => Promise<number>): Promise<void> {
  await expect.poll(readCount, { interval: 20 }).toBe(expected);
}

test('active requests of a real Envoy include TCP connections and WebSockets, but not idle connections and probes', async () => {
  const service = await slowService();
  const envoy = await envoyBefore(service.port);
  const readCount = (): Promise<number> => count(envoy.admin, [envoy.agentPort]);
  expect(await readCount()).toBe(0);

  const activeRequest = startRequest(envoy.http);
  startRequest(envoy.agentPort);
  await settlesAt(1, readCount);
  const stream = await openSocket(envoy.tcp);
  await settlesAt(2, readCount);
  const upgrade = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n';
  const webSocket = await openSocket(envoy.http, upgrade);
  await settlesAt(3, readCount);

  // A stop begins with this request; active requests continue.
  await createAdminClient('127.0.0.1', envoy.admin).post('/drain_listeners');
  expect(await readCount()).toBe(3);
  service.respondToAll();
  await activeRequest.completed;
  // The connection is open and idle.
  await settlesAt(2, readCount);
  stream.destroy();
  await settlesAt(1, readCount);
  webSocket.destroy();
  await settlesAt(0, readCount);
});
