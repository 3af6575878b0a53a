/**
 * A separate program that keeps the ports of an exited agent until the next one is reachable. It buffers queries and passes them on, and hands over
 * connections that wait in the kernel (chart: stand-in.machine.ts).
 *
 * Usage: port-stand-in DIRECTORY '[{"port", "transport", "address", "fd"}…]'
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { BufferedQueries } from './buffered-queries.ts';
import {
  acknowledgedResponse,
  type PassedPort,
  type PassedTransport,
  type PassingHeader,
  passedTrafficPathOf,
  passingFormat,
  readyResponse,
} from './kept-socket.ts';

interface HeldSocket {
  readonly port: PassedPort;
  readonly transport: PassedTransport;
  readonly address: string;
  readonly fd: number;
}

/** Timeout for the next agent to become reachable. */
const maxStandInMs = 10_000;
/** Total lifetime, including handed-over connections. */
const lastLimitMs = 30_000;
const redialMs = 10;
const dialLimitMs = 1_000;
/** Maximum agents to which queries are passed; agents of older versions do not acknowledge them. */
const maxDeliveries = 3;
/** After this time without a new connection, all waiting ones have been accepted. */
const idleMs = 20;
const acceptLimitMs = 200;
const maxConnections = 512;

const [directory = '', sockets = '[]'] = process.argv.slice(2);
process.title = 'port-stand-in';
const heldSockets = JSON.parse(sockets) as HeldSocket[];
const deadline = performance.now() + maxStandInMs;
// Open connections do not keep the process alive longer than this.
setTimeout(() => process.kill(process.pid, 'SIGKILL'), lastLimitMs).unref();

await Promise.all(
  heldSockets.map((socket) => (socket.transport === 'udp' ? passQueries(socket) : passConnections(socket))),
);

function dial(header: Omit<PassingHeader, 'format'>): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path: passedTrafficPathOf(directory), allowHalfOpen: true });
    const limit = setTimeout(() => socket.destroy(), dialLimitMs);
    let receivedText = '';
    const onData = (chunk: Buffer): void => {
      receivedText += chunk.toString('latin1');
      if (receivedText.length < readyResponse.length) return;
      clearTimeout(limit);
      socket.off('data', onData);
      socket.pause();
      socket.unshift(Buffer.from(receivedText.slice(readyResponse.length), 'latin1'));
      resolve(socket);
    };
    socket.on('data', onData);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      clearTimeout(limit);
      resolve(undefined);
    });
    const { port, transport, address, peer } = header;
    const fullHeader: PassingHeader = { format: passingFormat, port, transport, address, ...(peer && { peer }) };
    socket.write(`${JSON.stringify(fullHeader)}\n`);
  });
}

async function nextAgent({ port, transport, address }: HeldSocket): Promise<Socket | undefined> {
  for (; performance.now() < deadline; await sleep(redialMs)) {
    const socket = await dial({ port, transport, address });
    if (socket !== undefined) return socket;
  }
  return undefined;
}

async function passQueries(heldSocket: HeldSocket): Promise<void> {
  const socket = createSocket(isIPv6(heldSocket.address) ? 'udp6' : 'udp4');
  const queries = new BufferedQueries();
  socket.on('message', (message, { address, port }) => queries.add(message, address, port));
  socket.bind({ fd: heldSocket.fd });
  let agent = await nextAgent(heldSocket);
  if (agent === undefined) {
    socket.close();
    return;
  }
  await rejectFurtherQueries(socket);
  await queries.waitUntilDrained();
  socket.close();
  for (
    let attempt = 1;
    agent !== undefined && !(await areQueriesAcknowledged(agent, queries.lines)) && attempt < maxDeliveries;
    attempt++
  ) {
    await sleep(redialMs);
    agent = await nextAgent(heldSocket);
  }
}

/** A killed agent may have responded to no query, although it received all. */
async function areQueriesAcknowledged(agent: Socket, queryLines: readonly string[]): Promise<boolean> {
  agent.end(queryLines.join(''));
  try {
    return (await text(agent)) === acknowledgedResponse;
  } catch {
    return false;
  }
}

/** A connected socket receives only from its peer, so the kernel delivers further queries to the other agent at the same port. */
async function rejectFurtherQueries(socket: UdpSocket): Promise<void> {
  const { address, port } = socket.address();
  await new Promise<void>((resolve) => {
    socket.once('error', () => resolve());
    socket.connect(port, address, () => resolve());
  });
}

async function passConnections(heldSocket: HeldSocket): Promise<void> {
  const agent = await nextAgent(heldSocket);
  if (agent === undefined) return;
  agent.destroy();
  const startedAt = performance.now();
  let lastConnectionAt = startedAt;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (connection) => {
    lastConnectionAt = performance.now();
    void handOver(connection, heldSocket);
  });
  server.maxConnections = maxConnections;
  server.listen({ fd: heldSocket.fd });
  do await sleep(idleMs / 4);
  while (performance.now() - lastConnectionAt < idleMs && performance.now() - startedAt < acceptLimitMs);
  // The kernel resets connections that wait at a closing socket, so accept them first.
  await nextTurn();
  server.close();
}

async function handOver(connection: Socket, { port, transport, address }: HeldSocket): Promise<void> {
  connection.on('error', () => connection.destroy());
  const { remoteAddress, remotePort, localAddress = address } = connection;
  const peer =
    remoteAddress === undefined || remotePort === undefined ? undefined : { address: remoteAddress, port: remotePort };
  const agent = peer && (await dial({ port, transport, address: localAddress, peer }));
  if (agent === undefined) {
    connection.destroy();
    return;
  }
  agent.once('close', () => connection.destroySoon());
  connection.once('close', () => agent.destroySoon());
  connection.pipe(agent);
  agent.pipe(connection);
}
