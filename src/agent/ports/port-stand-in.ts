/**
 * A program of its own: stands in for an agent that has ended, at its ports, until the next one can be reached. It answers nothing: questions
 * are kept and passed on, connections wait in the kernel and are handed over (stand-in.machine.ts is its chart). The shell of port-keeper.ts
 * becomes it, and has the sockets.
 *
 * Usage: port-stand-in DIRECTORY '[{"port", "transport", "address", "fd"}…]'
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { KeptQuestions } from './kept-questions.ts';
import {
  type PassedPort,
  type PassingHeader,
  passedOnIn,
  passingAnswer,
  passingFormat,
  type Transport,
  takenAnswer,
} from './kept-socket.ts';

interface Held {
  readonly port: PassedPort;
  readonly transport: Transport;
  readonly address: string;
  readonly fd: number;
}

/** The next agent is there by then, or none comes. */
const standLimitMs = 10_000;
/** How long the stand-in lives in whole, with connections that were handed over. */
const lastLimitMs = 30_000;
const redialMs = 10;
const dialLimitMs = 1_000;
/** How many agents, one after the other, questions are passed on to: one of an older version does not say that it has taken them. */
const mostTimes = 3;
/** When nobody has connected for so long, all who waited have been taken. */
const quietMs = 20;
const acceptLimitMs = 200;
const mostConnections = 512;

const [directory = '', sockets = '[]'] = process.argv.slice(2);
process.title = 'port-stand-in';
const held = JSON.parse(sockets) as Held[];
const deadline = performance.now() + standLimitMs;
// Whatever is open by then. What fails before ends it as well, and the ports close, as they would have with their agent.
setTimeout(() => process.kill(process.pid, 'SIGKILL'), lastLimitMs).unref();

await Promise.all(held.map((one) => (one.transport === 'udp' ? passQuestions(one) : passConnections(one))));

/** The other agent, ready for what follows. Undefined: it is not to be had. */
function dialled(header: Omit<PassingHeader, 'format'>): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path: passedOnIn(directory), allowHalfOpen: true });
    const limit = setTimeout(() => socket.destroy(), dialLimitMs);
    let answer = '';
    const read = (chunk: Buffer): void => {
      answer += chunk.toString('latin1');
      if (answer.length < passingAnswer.length) return;
      clearTimeout(limit);
      socket.off('data', read);
      socket.pause();
      socket.unshift(Buffer.from(answer.slice(passingAnswer.length), 'latin1'));
      resolve(socket);
    };
    socket.on('data', read);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      clearTimeout(limit);
      resolve(undefined);
    });
    const { port, transport, address, peer } = header;
    const said: PassingHeader = { format: passingFormat, port, transport, address, ...(peer && { peer }) };
    socket.write(`${JSON.stringify(said)}\n`);
  });
}

/** Undefined: no agent came. */
async function nextAgent({ port, transport, address }: Held): Promise<Socket | undefined> {
  for (; performance.now() < deadline; await sleep(redialMs)) {
    const socket = await dialled({ port, transport, address });
    if (socket !== undefined) return socket;
  }
  return undefined;
}

async function passQuestions(one: Held): Promise<void> {
  const socket = createSocket(isIPv6(one.address) ? 'udp6' : 'udp4');
  const questions = new KeptQuestions();
  socket.on('message', (message, { address, port }) => questions.add(message, address, port));
  socket.bind({ fd: one.fd });
  let agent = await nextAgent(one);
  if (agent === undefined) {
    socket.close();
    return;
  }
  await refuseFurther(socket);
  await questions.haveAll();
  socket.close();
  for (let time = 1; agent !== undefined && !(await hasTaken(agent, questions.lines)) && time < mostTimes; time++) {
    await sleep(redialMs);
    agent = await nextAgent(one);
  }
}

/** @returns whether the agent has read them all, by its own word: one that is killed may have answered none */
async function hasTaken(agent: Socket, lines: readonly string[]): Promise<boolean> {
  agent.end(lines.join(''));
  try {
    return (await text(agent)) === takenAnswer;
  } catch {
    return false;
  }
}

/** A socket that is connected to somebody hears nobody else: the kernel gives the rest to the other agent, which has the same port. */
async function refuseFurther(socket: UdpSocket): Promise<void> {
  const { address, port } = socket.address();
  await new Promise<void>((resolve) => {
    socket.once('error', () => resolve());
    socket.connect(port, address, () => resolve());
  });
}

async function passConnections(one: Held): Promise<void> {
  const agent = await nextAgent(one);
  if (agent === undefined) return;
  agent.destroy();
  const begun = performance.now();
  let lastMs = begun;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (connection) => {
    lastMs = performance.now();
    void hand(connection, one);
  });
  server.maxConnections = mostConnections;
  server.listen({ fd: one.fd });
  do await sleep(quietMs / 4);
  while (performance.now() - lastMs < quietMs && performance.now() - begun < acceptLimitMs);
  // The kernel resets connections that wait at a socket that closes: this turn accepts them first.
  await nextTurn();
  server.close();
}

async function hand(connection: Socket, { port, transport, address }: Held): Promise<void> {
  connection.on('error', () => connection.destroy());
  const { remoteAddress, remotePort, localAddress = address } = connection;
  // Who has gone needs no answer.
  const peer =
    remoteAddress === undefined || remotePort === undefined ? undefined : { address: remoteAddress, port: remotePort };
  const agent = peer && (await dialled({ port, transport, address: localAddress, peer }));
  if (agent === undefined) {
    connection.destroy();
    return;
  }
  agent.once('close', () => connection.destroySoon());
  connection.once('close', () => agent.destroySoon());
  connection.pipe(agent);
  agent.pipe(connection);
}
