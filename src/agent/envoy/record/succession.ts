/**
 * The connection between an agent and the newer one that is to take its place: a socket in the record's directory, where only this user's
 * processes of this container get. A line each:
 *
 * - newer: `ready {"pid", "startTime", "format"}`; later `hold`;
 * - older: `granted`, or `refused` with a reason.
 */
import { lstatSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback } from 'xstate';
import type {
  LinkOrder,
  LinkReport,
  PredecessorReport,
  TakeoverConfirm,
} from '../../../../machines/agent/succession-protocol.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { parentOf } from '../base-ids/base-id-holder.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { isAlive, type ProcessIdentity } from '../held-envoy.ts';
import { recordFormat } from './agent-record.ts';

const mostBytes = 512;
/** How long whoever has connected has to say that it is ready. */
const readyLimitMs = 2_000;
const dialLimitMs = 1_000;
const endPollMs = 5;
/** How often the socket's name is looked for: once somebody has cleaned it up, nobody can connect. */
const lookMs = 10_000;

const socketIn = (directory: string): string => join(directory, 'succession');

/** Hands on what is said at a socket, line by line; a socket that says too much is closed. */
function readLines(socket: Socket, take: (line: string) => void): void {
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    text += chunk;
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) take(line);
    if (text.length > mostBytes) socket.destroy();
  });
}

/** Who says that it is ready: a child of the launcher, which alone starts agents, or why it is refused. */
function newcomerOf(line: string): ProcessIdentity | { refused: string } {
  const said = line.startsWith('ready ') ? parsed(line.slice('ready '.length)) : undefined;
  if (!isObject(said) || typeof said.pid !== 'number' || typeof said.startTime !== 'string')
    return { refused: 'request has no process ID, start time or record format' };
  const newcomer = { pid: said.pid, startTime: said.startTime };
  if (!isAlive(newcomer) || parentOf(newcomer.pid) !== process.ppid || newcomer.pid === process.pid)
    return { refused: 'process was not started by the launcher of this container' };
  if (said.format !== recordFormat)
    return {
      refused: `state record has format ${recordFormat}, newer agent reads ${String(said.format)}`,
    };
  return newcomer;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The older agent's end of the connection: one newer agent at a time. */
export class SuccessionServer {
  readonly #directory: string;
  readonly #refused: () => void;
  #links = 0;
  /** The newer agent that was heard last. */
  newcomer: ProcessIdentity | undefined;

  /** @param refused this agent goes on */
  constructor(directory: string, refused: () => void) {
    this.#directory = directory;
    this.#refused = refused;
  }

  /** Ends the newer agent, and waits until the kernel has what it held. @throws Error when it does not end */
  async endNewcomer(limitMs: number): Promise<void> {
    const { newcomer } = this;
    if (newcomer === undefined) return;
    if (isAlive(newcomer)) process.kill(newcomer.pid, 'SIGKILL');
    for (const deadline = performance.now() + limitMs; isAlive(newcomer); await sleep(endPollMs)) {
      if (performance.now() > deadline)
        throw new Error(`newer agent (process ${newcomer.pid}) did not exit after SIGKILL`);
    }
  }

  readonly link = fromCallback<LinkOrder, undefined>(({ sendBack, receive }) => {
    let current: Socket | undefined;
    let isOpen = true;
    const report = (event: LinkReport): void => {
      if (isOpen) sendBack(event);
    };
    const refuse = (socket: Socket, reason: string): void => {
      socket.end(`refused ${reason.replaceAll('\n', ' ')}\n`);
    };
    const take = (socket: Socket, line: string): void => {
      if (socket === current) {
        if (line === 'hold') report({ type: 'successor.confirmed' });
        return;
      }
      const newcomer = current === undefined ? newcomerOf(line) : { refused: 'another agent is already taking over' };
      if ('refused' in newcomer) {
        refuse(socket, newcomer.refused);
        return;
      }
      current = socket;
      this.newcomer = newcomer;
      socket.setTimeout(0);
      report({ type: 'successor.ready', pid: newcomer.pid });
    };
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.setTimeout(readyLimitMs, () => socket.destroy());
      readLines(socket, (line) => take(socket, line));
      socket.once('close', () => {
        if (socket !== current) return;
        current = undefined;
        report({ type: 'successor.lost', reason: 'connection closed' });
      });
    });
    server.maxConnections = 8;
    const failed = (reason: string): void => report({ type: 'link.failed', reason });
    this.#listen(server).catch((error) => failed(messageOf(error)));
    const look = setInterval(() => {
      if (current === undefined && server.listening && !isSocket(socketIn(this.#directory)))
        failed('hand-over socket was removed');
    }, lookMs).unref();
    receive((order) => {
      if (order.type === 'successor.grant') {
        current?.write('granted\n');
        return;
      }
      this.#refused();
      const socket = current;
      current = undefined;
      if (socket !== undefined) refuse(socket, order.reason);
    });
    return () => {
      isOpen = false;
      clearInterval(look);
      server.close();
      current?.destroy();
    };
  });

  /** Takes the place of an older agent's socket; the older agent goes on with the connection that it has. */
  async #listen(server: Server): Promise<void> {
    const path = socketIn(this.#directory);
    // A link that ends removes the name that it began with: one that has begun in its place, in the same turn, has another one.
    const own = `${path}.${process.pid}.${this.#links++}`;
    // An earlier process of this number may have left one.
    rmSync(own, { recursive: true, force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(own, resolve);
    });
    server.on('error', () => {});
    server.unref();
    if (!isSocket(path)) rmSync(path, { recursive: true, force: true });
    renameSync(own, path);
  }
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch {
    return false;
  }
}

/** The newer agent's end. @param held what runs is this agent's from now on */
export function successorLink(directory: string, held: () => void) {
  return fromCallback<TakeoverConfirm, undefined>(({ sendBack, receive }) => {
    let isOpen = true;
    const report = (event: PredecessorReport): void => {
      if (isOpen) sendBack(event);
    };
    const socket = connect(socketIn(directory));
    const dialLimit = setTimeout(() => socket.destroy(), dialLimitMs);
    socket.on('error', () => socket.destroy());
    socket.once('connect', () => {
      clearTimeout(dialLimit);
      const { pid } = process;
      socket.write(`ready ${JSON.stringify({ pid, startTime: startTimeOf(pid), format: recordFormat })}\n`);
    });
    readLines(socket, (line) => {
      if (line === 'granted') report({ type: 'predecessor.granted' });
      else if (line.startsWith('refused '))
        report({ type: 'predecessor.refused', reason: line.slice('refused '.length) });
    });
    socket.once('close', () => {
      clearTimeout(dialLimit);
      report({ type: 'predecessor.lost', reason: 'connection closed' });
    });
    receive(() => {
      held();
      socket.write('hold\n');
    });
    return () => {
      isOpen = false;
      socket.destroy();
    };
  });
}
