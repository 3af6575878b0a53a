/** Ports stay open when their agent is killed, and the next agent handles queries and connections that arrived in between. */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import { connect, createServer as createNetServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { freePorts } from '../../../test/harness/free-ports.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { recordPath } from '../envoy/record/agent-record.ts';
import { BufferedQueries } from './buffered-queries.ts';
import { KeptPorts } from './kept-ports.ts';
import { keepTcpServer, keepUdpSocket, passedTrafficPathOf, readyResponse } from './kept-socket.ts';
import { PassedTraffic } from './passed-on.ts';

/**
 * Kills an agent once its ports are open.
 *
 * @returns the directory of its successor
 */
async function killedAgent(): Promise<{ directory: string; port: number }> {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const [port = 0] = await freePorts(1);
  const program = join(packageRoot(), 'test/fixtures/agent-with-ports.ts');
  const agent = spawn(process.execPath, [program, folder.path, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(agent.stdout, 'data');
  agent.kill('SIGKILL');
  await once(agent, 'exit');
  return { directory: folder.path, port };
}

/** Starts the next agent, with a name server that echoes the query, and an HTTP server that returns the client address. */
async function nextAgent({
  directory,
  port,
}: {
  directory: string;
  port: number;
}): Promise<{ ports: KeptPorts; close: () => void }> {
  const at = { port, host: '127.0.0.1', address: '127.0.0.1', reusePort: true };
  const ports = new KeptPorts(directory);
  const udp = createSocket({ type: 'udp4', reusePort: true });
  const respond = (question: Buffer, peer: { address: string; port: number }): void =>
    udp.send(`${question}!`, peer.port, peer.address);
  udp.on('message', respond);
  udp.bind(at);
  await once(udp, 'listening');
  const http = createServer(({ socket }, response) =>
    response.end(`${socket.remoteAddress}:${socket.remotePort} ${socket.localAddress}`),
  );
  http.listen(at);
  await once(http, 'listening');
  await ports.listen();
  ports.keep('dns', [keepUdpSocket(udp)], { takeQuestion: respond, takeConnection: (socket) => socket.destroy() });
  ports.keep('status', [keepTcpServer(http)], { takeConnection: (socket) => http.emit('connection', socket) });
  const close = (): void => {
    ports.close();
    udp.removeAllListeners().close();
    http.closeAllConnections();
    http.close();
  };
  onTestFinished(() => {
    if (http.listening) close();
  });
  return { ports, close };
}

function sendQueries(port: number, count: number): { sent: number; responses: Set<string> } {
  const responses = new Set<string>();
  for (let index = 0; index < count; index++) {
    const client = createSocket('udp4');
    client.on('message', (message) => {
      responses.add(message.toString());
      client.close();
    });
    client.send(`${index}`, port, '127.0.0.1');
  }
  return { sent: count, responses };
}

async function fetchText(port: number): Promise<{ text: string; from: string }> {
  const request = get({ port, host: '127.0.0.1', agent: false });
  const [socket] = (await once(request, 'socket')) as [Socket];
  await once(socket, 'connect');
  const { localPort } = socket;
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { text: (await response.setEncoding('utf8').toArray()).join(''), from: `127.0.0.1:${localPort}` };
}

test('passes waiting queries and connections on the ports of a killed agent to the next agent', async () => {
  const killed = await killedAgent();
  const questions = sendQueries(killed.port, 150);
  const fetching = [fetchText(killed.port), fetchText(killed.port), fetchText(killed.port)];
  await sleep(400);
  expect(questions.responses.size).toBe(0);
  const { ports } = await nextAgent(killed);
  expect(ports.isAfterAnother).toBe(true);
  await eventually('every question is answered', () => questions.responses.size === questions.sent);
  for (const { text, from } of await Promise.all(fetching)) expect(text).toBe(`${from} 127.0.0.1`);
  // From here on, only the next agent has the port.
  const laterQueries = sendQueries(killed.port, 100);
  await eventually('every later question is answered', () => laterQueries.responses.size === laterQueries.sent);
  for (let repeat = 0; repeat < 20; repeat++) expect((await fetchText(killed.port)).text).toMatch(/^127/);
});

test('passes all unread queries of an exited agent to the next agent', async () => {
  const killed = await killedAgent();
  const questions = sendQueries(killed.port, 50);
  const path = passedTrafficPathOf(killed.directory);
  rmSync(path);
  const exitingAgent = createNetServer((socket) =>
    socket.once('data', () => {
      socket.write(readyResponse);
      socket.once('data', () => socket.destroy());
    }),
  ).listen(path);
  const [connection] = (await once(exitingAgent, 'connection')) as [Socket];
  await once(connection, 'close');
  exitingAgent.close();
  await nextAgent(killed);
  await eventually('every question is answered', () => questions.responses.size === questions.sent);
});

test('keeps the newest queries if they exceed the limits on number or length', () => {
  const manyQueries = new BufferedQueries();
  for (let index = 0; index < 4_100; index++) manyQueries.add(Buffer.from(`${index}`), '127.0.0.1', index + 1);
  expect(manyQueries.lines).toHaveLength(4_096);
  expect(manyQueries.lines[0]).toBe(`127.0.0.1 5 ${Buffer.from('4').toString('base64')}\n`);
  expect(manyQueries.total).toBe(4_100);
  const longQueries = new BufferedQueries();
  for (let index = 0; index < 100; index++) longQueries.add(Buffer.alloc(60_000), '::1', index + 1);
  expect(longQueries.lines.join('').length).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(longQueries.lines.at(-1)).toMatch(/^::1 100 /);
  expect(longQueries.lines.length).toBeGreaterThan(50);
});

test("detects from the record that ports may be open if the agents' socket was deleted", async () => {
  const killed = await killedAgent();
  writeFileSync(recordPath(killed.directory), '');
  rmSync(passedTrafficPathOf(killed.directory));
  const { ports } = await nextAgent(killed);
  expect(ports.isAfterAnother).toBe(true);
  const questions = sendQueries(killed.port, 50);
  await eventually('every question is answered', () => questions.responses.size === questions.sent);
});

test('closes the ports of an agent that exits normally', async () => {
  const killed = await killedAgent();
  const { close } = await nextAgent(killed);
  await eventually('it answers', async () => (await fetchText(killed.port)).text !== '');
  // The stand-in keeps the ports until everything was passed on.
  const isFree = async (): Promise<boolean> => {
    const other = createNetServer();
    other.listen({ port: killed.port, host: '127.0.0.1', exclusive: true });
    const [listenResult] = await Promise.race([once(other, 'listening').then(() => [true]), once(other, 'error')]);
    other.close();
    return listenResult === true;
  };
  expect(await isFree()).toBe(false);
  close();
  await eventually('the port is nobody’s', isFree);
});

const header = { format: 1, port: 'dns', transport: 'udp', address: '127.0.0.1' };
test.each<[string, string]>([
  ['an invalid header', 'hello\n'],
  ['a header without an end', 'x'.repeat(2_000)],
  ['another format version', `${JSON.stringify({ ...header, format: 2 })}\n`],
  ['an unknown port', `${JSON.stringify({ ...header, port: 'admin' })}\n`],
  ['an invalid peer address', `${JSON.stringify({ ...header, transport: 'tcp', peer: { address: 'x', port: 1 } })}\n`],
  ['a peer without a port', `${JSON.stringify({ ...header, transport: 'tcp', peer: { address: '::1' } })}\n`],
  ['bytes before the response', `${JSON.stringify(header)}\n127.0.0.1 5 AAAA\n`],
])('ignores a message with %s', async (_, text) => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const takenItems: unknown[] = [];
  const passedOn = new PassedTraffic(folder.path);
  onTestFinished(() => passedOn.close());
  passedOn.addReceiver('dns', {
    takeQuestion: (question) => takenItems.push(question),
    takeConnection: (socket) => takenItems.push(socket),
  });
  await passedOn.listen();
  const client = connect(passedTrafficPathOf(folder.path));
  client.on('error', () => {});
  client.write(text);
  const receivedChunks: Buffer[] = [];
  client.on('data', (chunk) => receivedChunks.push(chunk));
  await once(client, 'close');
  expect([receivedChunks, takenItems]).toEqual([[], []]);
});

test('closes the connection at an invalid query line, after reading the lines before it', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const takenItems: unknown[] = [];
  const passedOn = new PassedTraffic(folder.path);
  onTestFinished(() => passedOn.close());
  passedOn.addReceiver('dns', {
    takeQuestion: (question, peer, local) => takenItems.push([question.toString(), peer, local]),
    takeConnection: () => {},
  });
  await passedOn.listen();
  const client = connect(passedTrafficPathOf(folder.path));
  client.on('error', () => {});
  client.write(`${JSON.stringify(header)}\n`);
  await once(client, 'data');
  client.write('127.0.0.1 53 aGk=\n127.0.0.1 70000 aGk=\n127.0.0.1 53 aGk=\n');
  await once(client, 'close');
  expect(takenItems).toEqual([['hi', { address: '127.0.0.1', port: 53 }, '127.0.0.1']]);
});
