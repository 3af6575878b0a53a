/** The Unix socket is in the record directory, which only processes of this user and container can reach. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { createServer, isIP, type Server, type Socket } from 'node:net';
import { isObject } from '../../runtime/json-object.ts';
import { recordPath } from '../envoy/record/agent-record.ts';
import {
  type PassedPort,
  type PassingHeader,
  passedOnIn,
  passingFormat,
  readyResponse,
  takenResponse,
} from './kept-socket.ts';

/** Handles queries and connections as if they had arrived at its own sockets. */
export interface Taker {
  takeQuestion?(question: Buffer, peer: { readonly address: string; readonly port: number }, local: string): void;
  /** The connection has the addresses of its client and of the previous agent. */
  takeConnection(connection: Socket): void;
}

const maxHeaderBytes = 512;
const headerLimitMs = 2_000;
/** A line contains a query of at most 64 KiB, in base64. */
const maxLineBytes = 100_000;
/** Time limit for all queries of a previous agent. */
const idleMs = 15_000;
const maxConnections = 1_024;

export class PassedOn {
  readonly #directory: string;
  readonly #takers = new Map<PassedPort, Taker>();
  readonly #waitingSockets = new Set<Socket>();
  #server: Server | undefined;
  /** The record counts too, because the socket may have been deleted. */
  readonly isAfterAnother: boolean;

  constructor(directory: string) {
    this.#directory = directory;
    this.isAfterAnother = existsSync(passedOnIn(directory)) || existsSync(recordPath(directory));
  }

  take(port: PassedPort, taker: Taker): void {
    this.#takers.set(port, taker);
  }

  forget(port: PassedPort): void {
    this.#takers.delete(port);
  }

  /** If the socket cannot be taken over, queries and connections at the previous ports are lost. */
  async listen(): Promise<void> {
    this.close();
    const path = passedOnIn(this.#directory);
    const ownPath = `${path}.${process.pid}`;
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#receive(socket));
    server.maxConnections = maxConnections;
    this.#server = server;
    rmSync(ownPath, { force: true });
    await new Promise<void>((resolve) => {
      server.once('error', () => resolve());
      server.listen(ownPath, () => {
        // Listen before the rename, so that the path always accepts connections.
        if (this.#server === server) renameQuietly(ownPath, path);
        resolve();
      });
    });
    server.on('error', () => {});
    server.unref();
  }

  close(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#waitingSockets) socket.destroy();
    this.#waitingSockets.clear();
  }

  #receive(socket: Socket): void {
    this.#waitingSockets.add(socket);
    socket.once('close', () => this.#waitingSockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('end', endToo);
    const limit = setTimeout(() => socket.destroy(), headerLimitMs);
    let text = '';
    const read = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= maxHeaderBytes) return;
      clearTimeout(limit);
      socket.off('data', read);
      // The sender must wait for the response.
      if (end !== text.length - 1) socket.destroy();
      else this.#respond(socket, headerOf(text));
    };
    socket.on('data', read);
    socket.once('close', () => clearTimeout(limit));
  }

  #respond(socket: Socket, header: PassingHeader | undefined): void {
    const taker = header && this.#takers.get(header.port);
    if (taker === undefined || header === undefined) {
      socket.destroy();
      return;
    }
    const { peer, transport, address } = header;
    if (transport === 'tcp' && peer !== undefined) {
      this.#waitingSockets.delete(socket);
      socket.removeAllListeners('error').off('end', endToo);
      // Access restrictions to this host use these addresses.
      Object.defineProperties(socket, {
        remoteAddress: { value: peer.address },
        remotePort: { value: peer.port },
        localAddress: { value: address },
      });
      socket.write(readyResponse);
      taker.takeConnection(socket);
      return;
    }
    socket.setTimeout(idleMs, () => socket.destroy());
    if (transport === 'udp') {
      readQuestions(socket, (question, from) => taker.takeQuestion?.(question, from, address));
      socket.off('end', endToo).once('end', () => socket.end(takenResponse));
    }
    socket.write(readyResponse);
    if (transport === 'tcp') socket.end();
  }
}

function renameQuietly(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch {
    // Without the socket, this agent receives nothing.
  }
}

function endToo(this: Socket): void {
  this.end();
}

function readQuestions(
  socket: Socket,
  onQuestion: (question: Buffer, peer: { address: string; port: number }) => void,
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
      onQuestion(Buffer.from(question, 'base64'), peer);
    }
    if (text.length > maxLineBytes) socket.destroy();
  });
}

function headerOf(line: string): PassingHeader | undefined {
  const header = parseJson(line);
  if (!isObject(header) || header.format !== passingFormat || typeof header.address !== 'string') return undefined;
  const { port, transport, peer, address } = header;
  const isKnownPort = (port === 'dns' || port === 'status') && (transport === 'udp' || transport === 'tcp');
  if (!isKnownPort || isIP(address as string) === 0 || (peer !== undefined && !isPeer(peer))) return undefined;
  return header as unknown as PassingHeader;
}

function isPeer(value: unknown): value is { address: string; port: number } {
  if (!isObject(value) || typeof value.address !== 'string' || isIP(value.address) === 0) return false;
  return Number.isInteger(value.port) && (value.port as number) > 0 && (value.port as number) < 65_536;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
