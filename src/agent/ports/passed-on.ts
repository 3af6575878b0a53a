/**
 * What comes to the ports of an agent that has ended, heard by the one after it: a socket in the record's directory, where only this user's
 * processes of this container get. Its other end is port-stand-in.ts.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { createServer, isIP, type Server, type Socket } from 'node:net';
import { isObject } from '../../runtime/json-object.ts';
import { recordIn } from '../envoy/record/agent-record.ts';
import {
  type PassedPort,
  type PassingHeader,
  passedOnIn,
  passingAnswer,
  passingFormat,
  takenAnswer,
} from './kept-socket.ts';

/** Who takes what was passed on, as if it had come to its own sockets. */
export interface Taker {
  /** @param local the address that it came to */
  takeQuestion?(question: Buffer, peer: { readonly address: string; readonly port: number }, local: string): void;
  /** Takes a connection whose addresses are those of whoever has connected to the earlier agent. */
  takeConnection(connection: Socket): void;
}

const mostHeaderBytes = 512;
const headerLimitMs = 2_000;
/** Longest line: a question of 64 KiB, in base64. */
const mostLineBytes = 100_000;
/** As many as questions of one agent that has ended may take, and more connections than its ports would have had. */
const idleMs = 15_000;
const mostConnections = 1_024;

export class PassedOn {
  readonly #directory: string;
  readonly #takers = new Map<PassedPort, Taker>();
  readonly #waiting = new Set<Socket>();
  #server: Server | undefined;
  /** An agent of this container was here before, and its ports may be open yet. Its socket may be gone, as files are that somebody cleans up. */
  readonly isAfterAnother: boolean;

  constructor(directory: string) {
    this.#directory = directory;
    this.isAfterAnother = existsSync(passedOnIn(directory)) || existsSync(recordIn(directory));
  }

  take(port: PassedPort, taker: Taker): void {
    this.#takers.set(port, taker);
  }

  forget(port: PassedPort): void {
    this.#takers.delete(port);
  }

  /** Takes the place of an agent before this one. Where no socket can be made, what has come to that one's ports is lost. */
  async listen(): Promise<void> {
    this.close();
    const path = passedOnIn(this.#directory);
    const own = `${path}.${process.pid}`;
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#hear(socket));
    server.maxConnections = mostConnections;
    this.#server = server;
    rmSync(own, { force: true });
    await new Promise<void>((resolve) => {
      server.once('error', () => resolve());
      server.listen(own, () => {
        // Before the name is there, as whoever has the name is heard.
        if (this.#server === server) renameQuietly(own, path);
        resolve();
      });
    });
    server.on('error', () => {});
    server.unref();
  }

  close(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#waiting) socket.destroy();
    this.#waiting.clear();
  }

  #hear(socket: Socket): void {
    this.#waiting.add(socket);
    socket.once('close', () => this.#waiting.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('end', endToo);
    const limit = setTimeout(() => socket.destroy(), headerLimitMs);
    let text = '';
    const read = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= mostHeaderBytes) return;
      clearTimeout(limit);
      socket.off('data', read);
      // Nothing follows before the answer.
      if (end !== text.length - 1) socket.destroy();
      else this.#answer(socket, headerOf(text));
    };
    socket.on('data', read);
    socket.once('close', () => clearTimeout(limit));
  }

  #answer(socket: Socket, header: PassingHeader | undefined): void {
    const taker = header && this.#takers.get(header.port);
    if (taker === undefined || header === undefined) {
      socket.destroy();
      return;
    }
    const { peer, transport, address } = header;
    if (transport === 'tcp' && peer !== undefined) {
      this.#waiting.delete(socket);
      socket.removeAllListeners('error').off('end', endToo);
      // Checks that restrict access to this host ask for these addresses.
      Object.defineProperties(socket, {
        remoteAddress: { value: peer.address },
        remotePort: { value: peer.port },
        localAddress: { value: address },
      });
      socket.write(passingAnswer);
      taker.takeConnection(socket);
      return;
    }
    socket.setTimeout(idleMs, () => socket.destroy());
    if (transport === 'udp') {
      readQuestions(socket, (question, from) => taker.takeQuestion?.(question, from, address));
      socket.off('end', endToo).once('end', () => socket.end(takenAnswer));
    }
    socket.write(passingAnswer);
    if (transport === 'tcp') socket.end();
  }
}

function renameQuietly(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch {
    // The socket cannot be made: nothing is passed on to this agent.
  }
}

function endToo(this: Socket): void {
  this.end();
}

/** A line each: who asks, and the question in base64. What is not such a line ends the connection. */
function readQuestions(
  socket: Socket,
  take: (question: Buffer, peer: { address: string; port: number }) => void,
): void {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const [, address = '', port = '', question = ''] = /^([0-9a-fA-F.:%\w]+) (\d{1,5}) ([\w+/=]*)$/.exec(line) ?? [];
      const peer = { address, port: Number(port) };
      if (!isPeer(peer)) {
        socket.destroy();
        return;
      }
      take(Buffer.from(question, 'base64'), peer);
    }
    if (text.length > mostLineBytes) socket.destroy();
  });
}

/** Undefined: it is none, and nothing is taken. */
function headerOf(line: string): PassingHeader | undefined {
  const header = parsed(line);
  if (!isObject(header) || header.format !== passingFormat || typeof header.address !== 'string') return undefined;
  const { port, transport, peer, address } = header;
  const isKnown = (port === 'dns' || port === 'status') && (transport === 'udp' || transport === 'tcp');
  if (!isKnown || isIP(address as string) === 0 || (peer !== undefined && !isPeer(peer))) return undefined;
  return header as unknown as PassingHeader;
}

function isPeer(value: unknown): value is { address: string; port: number } {
  if (!isObject(value) || typeof value.address !== 'string' || isIP(value.address) === 0) return false;
  return Number.isInteger(value.port) && (value.port as number) > 0 && (value.port as number) < 65_536;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
