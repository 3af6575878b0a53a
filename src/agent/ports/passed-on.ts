/** The Unix socket is in the record directory, which only processes of this user and container can reach. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { createServer, isIP, type Server, type Socket } from 'node:net';
import { isObject } from '../../runtime/json-object.ts';
import { recordPath } from '../envoy/record/agent-record.ts';
import {
  acknowledgedResponse,
  type PassedPort,
  type PassingHeader,
  passedTrafficPathOf,
  passingFormat,
  readyResponse,
} from './kept-socket.ts';

/** Handles queries and connections as if they had arrived at its own sockets. */
export interface PassedTrafficReceiver {
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

export class PassedTraffic {
  readonly #directory: string;
  readonly #receiverByPort = new Map<PassedPort, PassedTrafficReceiver>();
  readonly #waitingSockets = new Set<Socket>();
  #server: Server | undefined;
  /** Also true if only the record exists, because the socket may have been deleted. */
  readonly isAfterAnother: boolean;

  constructor(directory: string) {
    this.#directory = directory;
    this.isAfterAnother = existsSync(passedTrafficPathOf(directory)) || existsSync(recordPath(directory));
  }

  addReceiver(port: PassedPort, receiver: PassedTrafficReceiver): void {
    this.#receiverByPort.set(port, receiver);
  }

  removeReceiver(port: PassedPort): void {
    this.#receiverByPort.delete(port);
  }

  /** If the socket cannot be taken over, queries and connections at the previous ports are lost. */
  async listen(): Promise<void> {
    this.close();
    const path = passedTrafficPathOf(this.#directory);
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
    socket.on('end', endAfterPeer);
    const headerTimer = setTimeout(() => socket.destroy(), headerLimitMs);
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const newlineIndex = text.indexOf('\n');
      if (newlineIndex < 0 && text.length <= maxHeaderBytes) return;
      clearTimeout(headerTimer);
      socket.off('data', onData);
      // The sender must wait for the response.
      if (newlineIndex !== text.length - 1) socket.destroy();
      else this.#respond(socket, headerOf(text));
    };
    socket.on('data', onData);
    socket.once('close', () => clearTimeout(headerTimer));
  }

  #respond(socket: Socket, header: PassingHeader | undefined): void {
    const receiver = header && this.#receiverByPort.get(header.port);
    if (receiver === undefined || header === undefined) {
      socket.destroy();
      return;
    }
    const { peer, transport, address } = header;
    if (transport === 'tcp' && peer !== undefined) {
      this.#waitingSockets.delete(socket);
      socket.removeAllListeners('error').off('end', endAfterPeer);
      // Access restrictions to this host use these addresses.
      Object.defineProperties(socket, {
        remoteAddress: { value: peer.address },
        remotePort: { value: peer.port },
        localAddress: { value: address },
      });
      socket.write(readyResponse);
      receiver.takeConnection(socket);
      return;
    }
    socket.setTimeout(idleMs, () => socket.destroy());
    if (transport === 'udp') {
      readQueries(socket, (question, from) => receiver.takeQuestion?.(question, from, address));
      socket.off('end', endAfterPeer).once('end', () => socket.end(acknowledgedResponse));
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

function endAfterPeer(this: Socket): void {
  this.end();
}

function readQueries(
  socket: Socket,
  onQuery: (question: Buffer, peer: { address: string; port: number }) => void,
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
      onQuery(Buffer.from(question, 'base64'), peer);
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
