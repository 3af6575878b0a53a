/** Limits of pilot-discovery: more connections than file descriptors, and more connection attempts than a backlog. */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { AdsTestClient, typeUrls } from '../ads-client.ts';
import { cpuTimeMs } from '../bench/cpu-time.ts';
import { cartCluster, sidecar } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { makeRoot } from '../load/attacked-server.ts';

const openFiles = 256;
const silentConnections = 400;
/** More than the default backlog of a server (511), and less than that of the system. */
const simultaneousConnections = 700;

let root: string;
let server: Program;
let grpc: number;
let http: number;
let sockets: Socket[];

beforeEach(async () => {
  root = makeRoot();
  sockets = [];
  [grpc, http] = (await freePorts(2)) as [number, number];
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.signal('SIGCONT');
  await server.stop({ deadlineMs: 8_000 });
  rmSync(root, { recursive: true, force: true });
});

/** @param limit shell command that sets a limit before the start */
async function start(limit = ''): Promise<void> {
  const args = ['discovery', '--registries=', '--configDir', join(root, 'config'), '--meshConfig', join(root, 'none')];
  const ports = ['--grpcAddr', `127.0.0.1:${grpc}`, '--httpAddr', `127.0.0.1:${http}`, '--monitoringAddr', ''];
  const script = `${limit}exec "$0" "$@"`;
  server = Program.run('pilot-discovery', '/bin/sh', {
    args: ['-c', script, join(packageRoot(), 'bin/pilot-discovery'), ...args, ...ports],
    env: process.env,
    cwd: root,
  });
  await eventually('the control plane is ready', isReady, { hopeless: () => server.hopeless() });
}

const isReady = async (): Promise<boolean> => {
  const response = await fetch(`http://127.0.0.1:${http}/ready`, { headers: { connection: 'close' } }).catch(
    () => undefined,
  );
  return response?.ok === true;
};

/**
 * Opens connections from different addresses without sending anything.
 * @returns a function that returns the number of connections that have been open
 */
function openConnections(count: number, port = grpc): () => number {
  let openedCount = 0;
  for (let i = 0; i < count; i++) {
    const localAddress = `127.1.${i >> 8}.${i & 255}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress }, () => void openedCount++);
    socket.on('error', () => {});
    sockets.push(socket);
  }
  return () => openedCount;
}

test('a server with few file descriptors serves connected clients and probes, and reports rejected connections', async () => {
  await start(`ulimit -n ${openFiles}; `);
  const client = new AdsTestClient(grpc);
  const stream = client.sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
  await stream.next();
  const countOpened = openConnections(silentConnections);
  await eventually('all have tried', () => countOpened() === silentConnections);
  await server.line(loggedLine('connections.limitReached'));
  const cpuBefore = cpuTimeMs(server.pid);
  const startedAt = performance.now();
  expect(await isReady()).toBe(true);
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
  expect((await stream.next()).typeUrl).toBe(typeUrls.EDS);
  // No client is repeatedly admitted and disconnected.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(cpuTimeMs(server.pid) - cpuBefore).toBeLessThan((performance.now() - startedAt) / 2);
  const limitFields = { connections: 128, wanted: 60_000, openFiles: 256 };
  expect(linesOf(server.lines, 'option.connectionsLimited', limitFields)).toHaveLength(1);
  stream.cancel();
  client.close();
});

test('a server with few file descriptors reads changes and responds regardless of which clients occupy its HTTP port', async () => {
  await start(`ulimit -n ${openFiles}; `);
  const client = new AdsTestClient(grpc);
  const stream = client.sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
  await stream.next();
  const countOpened = openConnections(silentConnections, http);
  await eventually('all have tried', () => countOpened() === silentConnections);
  const entry = `apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: late, namespace: default}
spec: {address: 10.0.0.1}
`;
  writeFileSync(join(root, 'config/late.yaml'), entry);
  const page = async (path: string) =>
    (await fetch(`http://127.0.0.1:${http}${path}`, { headers: { connection: 'close' } })).text();
  await eventually('what was written is in force', async () => (await page('/debug/configz')).includes('"late"'));
  expect(await isReady()).toBe(true);
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
  expect((await stream.next()).typeUrl).toBe(typeUrls.EDS);
  const openFileCount = readdirSync(`/proc/${server.pid}/fd`).length;
  expect(openFileCount).toBeLessThan(openFiles / 2);
  stream.cancel();
  client.close();
});

test('a briefly busy server rejects no client that connects during that time', async (context) => {
  const systemLimit = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  if (systemLimit < simultaneousConnections) return context.skip(`the system lets ${systemLimit} wait`);
  await start();
  server.signal('SIGSTOP');
  const countOpened = openConnections(simultaneousConnections);
  await eventually('all are connected though nobody accepts', () => countOpened() === simultaneousConnections);
});
