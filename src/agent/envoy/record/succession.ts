/**
 * The connection between an agent and a newer one: a socket in the record's directory, which only processes of this user and container can open.
 * Messages are lines:
 *
 * - newer agent: `ready {"pid", "startTime", "format"}`; later `hold`;
 * - older agent: `granted`, or `refused` with a reason.
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
import { parentOf } from '../base-ids/base-id-owners.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { isAlive, type ProcessIdentity } from '../detached-envoy.ts';
import { recordFormat } from './agent-record.ts';

const maxLineBytes = 512;
/** Timeout of the `ready` message of a new connection. */
const readyLimitMs = 2_000;
const dialLimitMs = 1_000;
const endPollMs = 5;
/** Interval of checks that the socket's name exists, without which no agent can connect. */
const checkMs = 10_000;

const socketPathOf = (directory: string): string => join(directory, 'succession');

/** Closes a socket that sends more than 512 bytes without a line end. */
function readLines(socket: Socket, onLine: (line: string) => void): void {
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    text += chunk;
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    if (text.length > maxLineBytes) socket.destroy();
  });
}

/** The sender must be a child of the launcher, which alone starts agents. */
function readyAgentIn(line: string): ProcessIdentity | { refused: string } {
  const message = line.startsWith('ready ') ? parseJson(line.slice('ready '.length)) : undefined;
  if (!isObject(message) || typeof message.pid !== 'number' || typeof message.startTime !== 'string')
    return { refused: 'request has no process ID, start time or record format' };
  const newerAgent = { pid: message.pid, startTime: message.startTime };
  if (!isAlive(newerAgent) || parentOf(newerAgent.pid) !== process.ppid || newerAgent.pid === process.pid)
    return { refused: 'process was not started by the launcher of this container' };
  if (message.format !== recordFormat)
    return {
      refused: `state record has format ${recordFormat}, newer agent reads ${String(message.format)}`,
    };
  return newerAgent;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Accepts one newer agent at a time. */
export class SuccessionServer {
  readonly #directory: string;
  readonly #onRefused: () => void;
  #linkCount = 0;
  newerAgent: ProcessIdentity | undefined;

  constructor(directory: string, onRefused: () => void) {
    this.#directory = directory;
    this.#onRefused = onRefused;
  }

  /** Kills the newer agent and waits until the kernel has released its resources. */
  async killNewerAgent(limitMs: number): Promise<void> {
    const { newerAgent } = this;
    if (newerAgent === undefined) return;
    if (isAlive(newerAgent)) process.kill(newerAgent.pid, 'SIGKILL');
    for (const deadline = performance.now() + limitMs; isAlive(newerAgent); await sleep(endPollMs)) {
      if (performance.now() > deadline)
        throw new Error(`newer agent (process ${newerAgent.pid}) did not exit after SIGKILL`);
    }
  }

  readonly link = fromCallback<LinkOrder, undefined>(({ sendBack, receive }) => {
    let currentSocket: Socket | undefined;
    let isOpen = true;
    const report = (event: LinkReport): void => {
      if (isOpen) sendBack(event);
    };
    const refuse = (socket: Socket, reason: string): void => {
      socket.end(`refused ${reason.replaceAll('\n', ' ')}\n`);
    };
    const handleLine = (socket: Socket, line: string): void => {
      if (socket === currentSocket) {
        if (line === 'hold') report({ type: 'successor.confirmed' });
        return;
      }
      const newerAgent =
        currentSocket === undefined ? readyAgentIn(line) : { refused: 'another agent is already taking over' };
      if ('refused' in newerAgent) {
        refuse(socket, newerAgent.refused);
        return;
      }
      currentSocket = socket;
      this.newerAgent = newerAgent;
      socket.setTimeout(0);
      report({ type: 'successor.ready', pid: newerAgent.pid });
    };
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.setTimeout(readyLimitMs, () => socket.destroy());
      readLines(socket, (line) => handleLine(socket, line));
      socket.once('close', () => {
        if (socket !== currentSocket) return;
        currentSocket = undefined;
        report({ type: 'successor.lost', reason: 'connection closed' });
      });
    });
    server.maxConnections = 8;
    const reportFailure = (reason: string): void => report({ type: 'link.failed', reason });
    this.#listen(server).catch((error) => reportFailure(messageOf(error)));
    const checkTimer = setInterval(() => {
      if (currentSocket === undefined && server.listening && !isSocket(socketPathOf(this.#directory)))
        reportFailure('hand-over socket was removed');
    }, checkMs).unref();
    receive((order) => {
      if (order.type === 'successor.grant') {
        currentSocket?.write('granted\n');
        return;
      }
      this.#onRefused();
      const socket = currentSocket;
      currentSocket = undefined;
      if (socket !== undefined) refuse(socket, order.reason);
    });
    return () => {
      isOpen = false;
      clearInterval(checkTimer);
      server.close();
      currentSocket?.destroy();
    };
  });

  /** Replaces the socket of an older agent, which keeps its established connection. */
  async #listen(server: Server): Promise<void> {
    const path = socketPathOf(this.#directory);
    // A closed server removes the name that it was bound to. Because the name is unique, it does not remove the next server's socket.
    const ownPath = `${path}.${process.pid}.${this.#linkCount++}`;
    // An earlier process with this PID may have left the socket.
    rmSync(ownPath, { recursive: true, force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(ownPath, resolve);
    });
    server.on('error', () => {});
    server.unref();
    if (!isSocket(path)) rmSync(path, { recursive: true, force: true });
    renameSync(ownPath, path);
  }
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch {
    return false;
  }
}

export function successorLink(directory: string, onConfirmed: () => void) {
  return fromCallback<TakeoverConfirm, undefined>(({ sendBack, receive }) => {
    let isOpen = true;
    const report = (event: PredecessorReport): void => {
      if (isOpen) sendBack(event);
    };
    const socket = connect(socketPathOf(directory));
    const dialTimer = setTimeout(() => socket.destroy(), dialLimitMs);
    socket.on('error', () => socket.destroy());
    socket.once('connect', () => {
      clearTimeout(dialTimer);
      const { pid } = process;
      socket.write(`ready ${JSON.stringify({ pid, startTime: startTimeOf(pid), format: recordFormat })}\n`);
    });
    readLines(socket, (line) => {
      if (line === 'granted') report({ type: 'predecessor.granted' });
      else if (line.startsWith('refused '))
        report({ type: 'predecessor.refused', reason: line.slice('refused '.length) });
    });
    socket.once('close', () => {
      clearTimeout(dialTimer);
      report({ type: 'predecessor.lost', reason: 'connection closed' });
    });
    receive(() => {
      onConfirmed();
      socket.write('hold\n');
    });
    return () => {
      isOpen = false;
      socket.destroy();
    };
  });
}
