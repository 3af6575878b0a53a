/** Interaction of the epochs of one base ID: shared memory and sockets. */
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { readLines } from './lines.ts';

/** Requests of a child to its parent. */
type Request = 'give up admin' | 'drain' | 'terminate';

const memoryBytes = 104;
const flagsOffset = 96;

const memoryFile = (baseId: number): string => `/dev/shm/envoy_shared_memory_${baseId * 10}`;
/** Abstract socket, which disappears with its owner. Epoch numbers are taken modulo 3, as in Envoy. */
const socketName = (baseId: number, epoch: number): string => `\0envoy_stand_in_${baseId}_${epoch % 3}`;

/** The flag of an initializing epoch, in the shared memory file of Envoy. */
export class SharedMemory {
  readonly #file: string;

  constructor(baseId: number) {
    this.#file = memoryFile(baseId);
  }

  /** Created by epoch 0. */
  create(): void {
    writeFileSync(this.#file, Buffer.alloc(memoryBytes), { mode: 0o600 });
  }

  /** @throws Error if it does not exist */
  get initializing(): boolean {
    const fd = openSync(this.#file, 'r');
    try {
      const flags = Buffer.alloc(1);
      readSync(fd, flags, 0, 1, flagsOffset);
      return (flags[0]! & 1) === 1;
    } finally {
      closeSync(fd);
    }
  }

  set initializing(is: boolean) {
    const fd = openSync(this.#file, 'r+');
    try {
      writeSync(fd, Buffer.from([is ? 1 : 0]), 0, 1, flagsOffset);
    } finally {
      closeSync(fd);
    }
  }
}

/** A child's connection to its parent. */
export class Parent {
  readonly #socket: Socket;
  readonly #waiters: (() => void)[] = [];
  #isTerminating = false;

  private constructor(socket: Socket, onEarlyDeath: () => void) {
    this.#socket = socket;
    readLines(socket, () => this.#waiters.shift()?.());
    socket.once('close', () => {
      for (const resolve of this.#waiters.splice(0)) resolve();
      if (!this.#isTerminating) onEarlyDeath();
    });
  }

  /** Rejects if no such epoch is running. */
  static attach(child: { epoch: number; baseId: number }, onEarlyDeath: () => void): Promise<Parent> {
    return new Promise((resolve, reject) => {
      const socket = connect(socketName(child.baseId, child.epoch - 1));
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Parent(socket, onEarlyDeath));
      });
    });
  }

  /** Resolves when the request was executed, or the parent has exited. */
  request(request: Request): Promise<void> {
    if (request === 'terminate') this.#isTerminating = true;
    if (this.#socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#socket.write(`${request}\n`);
    });
  }
}

/** Accepts requests of a child. Rejects if another epoch uses the socket, in which case Envoy exits. */
export function listenForChild(
  { epoch, baseId }: { epoch: number; baseId: number },
  on: { readonly onAttach: () => void; readonly onRequest: (request: Request) => Promise<void> },
): Promise<Server> {
  const server = createServer((socket) => {
    on.onAttach();
    readLines(socket, async (line) => {
      await on.onRequest(line as Request);
      socket.write('done\n');
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketName(baseId, epoch), () => resolve(server));
  });
}
