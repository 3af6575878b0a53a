/** Ports stay open when their agent is killed, and what comes to them meanwhile is answered by the next one. */
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
import { recordIn } from '../envoy/record/agent-record.ts';
import { KeptPorts } from './kept-ports.ts';
import { KeptQuestions } from './kept-questions.ts';
import { keptTcp, keptUdp, passedOnIn, passingAnswer } from './kept-socket.ts';
import { PassedOn } from './passed-on.ts';

/** An agent that is killed once it has its ports. @returns where the next one is to meet it */
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

/** The next agent, with a name server that says what it was asked, and an HTTP server that says by whom. */
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
  const answer = (question: Buffer, peer: { address: string; port: number }): void =>
    udp.send(`${question}!`, peer.port, peer.address);
  udp.on('message', answer);
  udp.bind(at);
  await once(udp, 'listening');
  const http = createServer(({ socket }, response) =>
    response.end(`${socket.remoteAddress}:${socket.remotePort} ${socket.localAddress}`),
  );
  http.listen(at);
  await once(http, 'listening');
  await ports.listen();
  ports.keep('dns', [keptUdp(udp)], { takeQuestion: answer, takeConnection: (socket) => socket.destroy() });
  ports.keep('status', [keptTcp(http)], { takeConnection: (socket) => http.emit('connection', socket) });
  const close = (): void => {
    ports.end();
    udp.removeAllListeners().close();
    http.closeAllConnections();
    http.close();
  };
  onTestFinished(() => {
    if (http.listening) close();
  });
  return { ports, close };
}

function ask(port: number, count: number): { asked: number; answers: Set<string> } {
  const answers = new Set<string>();
  for (let index = 0; index < count; index++) {
    const client = createSocket('udp4');
    client.on('message', (message) => {
      answers.add(message.toString());
      client.close();
    });
    client.send(`${index}`, port, '127.0.0.1');
  }
  return { asked: count, answers };
}

async function fetched(port: number): Promise<{ text: string; from: string }> {
  const request = get({ port, host: '127.0.0.1', agent: false });
  const [socket] = (await once(request, 'socket')) as [Socket];
  await once(socket, 'connect');
  const { localPort } = socket;
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { text: (await response.setEncoding('utf8').toArray()).join(''), from: `127.0.0.1:${localPort}` };
}

test('what comes to the ports of a killed agent waits, and is answered by the next one as if it had come to that', async () => {
  const killed = await killedAgent();
  const questions = ask(killed.port, 150);
  const fetching = [fetched(killed.port), fetched(killed.port), fetched(killed.port)];
  await sleep(400);
  expect(questions.answers.size).toBe(0);
  const { ports } = await nextAgent(killed);
  expect(ports.isAfterAnother).toBe(true);
  await eventually('every question is answered', () => questions.answers.size === questions.asked);
  for (const { text, from } of await Promise.all(fetching)) expect(text).toBe(`${from} 127.0.0.1`);
  // From now on the port is the next one's alone.
  const later = ask(killed.port, 100);
  await eventually('every later question is answered', () => later.answers.size === later.asked);
  for (let again = 0; again < 20; again++) expect((await fetched(killed.port)).text).toMatch(/^127/);
});

test('an agent that is gone before it has read what waited is followed by one that has all of it', async () => {
  const killed = await killedAgent();
  const questions = ask(killed.port, 50);
  const path = passedOnIn(killed.directory);
  rmSync(path);
  const gone = createNetServer((socket) =>
    socket.once('data', () => {
      socket.write(passingAnswer);
      socket.once('data', () => socket.destroy());
    }),
  ).listen(path);
  const [connection] = (await once(gone, 'connection')) as [Socket];
  await once(connection, 'close');
  gone.close();
  await nextAgent(killed);
  await eventually('every question is answered', () => questions.answers.size === questions.asked);
});

test('of more questions than there is room for the newest are kept, by number and by length', () => {
  const many = new KeptQuestions();
  for (let index = 0; index < 4_100; index++) many.add(Buffer.from(`${index}`), '127.0.0.1', index + 1);
  expect(many.lines).toHaveLength(4_096);
  expect(many.lines[0]).toBe(`127.0.0.1 5 ${Buffer.from('4').toString('base64')}\n`);
  expect(many.total).toBe(4_100);
  const long = new KeptQuestions();
  for (let index = 0; index < 100; index++) long.add(Buffer.alloc(60_000), '::1', index + 1);
  expect(long.lines.join('').length).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(long.lines.at(-1)).toMatch(/^::1 100 /);
  expect(long.lines.length).toBeGreaterThan(50);
});

test('where somebody has removed the socket at which agents meet, the record says that ports may be open', async () => {
  const killed = await killedAgent();
  writeFileSync(recordIn(killed.directory), '');
  rmSync(passedOnIn(killed.directory));
  const { ports } = await nextAgent(killed);
  expect(ports.isAfterAnother).toBe(true);
  const questions = ask(killed.port, 50);
  await eventually('every question is answered', () => questions.answers.size === questions.asked);
});

test('an agent that ends in order closes its ports', async () => {
  const killed = await killedAgent();
  const { close } = await nextAgent(killed);
  await eventually('it answers', async () => (await fetched(killed.port)).text !== '');
  // The stand-in of the one that was killed has its own until it has passed on everything.
  const isFree = async (): Promise<boolean> => {
    const other = createNetServer();
    other.listen({ port: killed.port, host: '127.0.0.1', exclusive: true });
    const [how] = await Promise.race([once(other, 'listening').then(() => [true]), once(other, 'error')]);
    other.close();
    return how === true;
  };
  expect(await isFree()).toBe(false);
  close();
  await eventually('the port is nobody’s', isFree);
});

const header = { format: 1, port: 'dns', transport: 'udp', address: '127.0.0.1' };
test.each<[string, string]>([
  ['no header', 'hello\n'],
  ['a header without an end', 'x'.repeat(2_000)],
  ['another format', `${JSON.stringify({ ...header, format: 2 })}\n`],
  ['a port that nobody has', `${JSON.stringify({ ...header, port: 'admin' })}\n`],
  [
    'a peer that is no address',
    `${JSON.stringify({ ...header, transport: 'tcp', peer: { address: 'x', port: 1 } })}\n`,
  ],
  ['a peer without a port', `${JSON.stringify({ ...header, transport: 'tcp', peer: { address: '::1' } })}\n`],
  ['bytes before the answer', `${JSON.stringify(header)}\n127.0.0.1 5 AAAA\n`],
])('%s is not heard', async (_, text) => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const taken: unknown[] = [];
  const passedOn = new PassedOn(folder.path);
  onTestFinished(() => passedOn.close());
  passedOn.take('dns', {
    takeQuestion: (question) => taken.push(question),
    takeConnection: (socket) => taken.push(socket),
  });
  await passedOn.listen();
  const client = connect(passedOnIn(folder.path));
  client.on('error', () => {});
  client.write(text);
  const said: Buffer[] = [];
  client.on('data', (chunk) => said.push(chunk));
  await once(client, 'close');
  expect([said, taken]).toEqual([[], []]);
});

test('a question that is no line ends the connection, and those before it are heard', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const taken: unknown[] = [];
  const passedOn = new PassedOn(folder.path);
  onTestFinished(() => passedOn.close());
  passedOn.take('dns', {
    takeQuestion: (question, peer, local) => taken.push([question.toString(), peer, local]),
    takeConnection: () => {},
  });
  await passedOn.listen();
  const client = connect(passedOnIn(folder.path));
  client.on('error', () => {});
  client.write(`${JSON.stringify(header)}\n`);
  await once(client, 'data');
  client.write('127.0.0.1 53 aGk=\n127.0.0.1 70000 aGk=\n127.0.0.1 53 aGk=\n');
  await once(client, 'close');
  expect(taken).toEqual([['hi', { address: '127.0.0.1', port: 53 }, '127.0.0.1']]);
});
