/** What the epochs of one base id do to each other (spec/envoy-hot-restart.md §0 and §2): shared memory, and sockets. */
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { readLines } from './lines.ts';

/** What a child asks of its parent. */
type Request = 'give up admin' | 'drain' | 'terminate';

const memoryBytes = 104;
const flagsOffset = 96;

const memoryFile = (baseId: number): string => `/dev/shm/envoy_shared_memory_${baseId * 10}`;
/** An abstract socket: it vanishes with its owner. Numbers are taken modulo 3, as Envoy's are. */
const socketName = (baseId: number, epoch: number): string => `\0envoy_stand_in_${baseId}_${epoch % 3}`;

/** The mark that an epoch is initializing, in the file where Envoy keeps it. */
export class SharedMemory {
  readonly #file: string;

  constructor(baseId: number) {
    this.#file = memoryFile(baseId);
  }

  /** Epoch 0 makes it anew. */
  create(): void {
    writeFileSync(this.#file, Buffer.alloc(memoryBytes), { mode: 0o600 });
  }

  /** @throws Error when there is none */
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

/** The parent, as its child talks to it. */
export class Parent {
  readonly #socket: Socket;
  readonly #answers: (() => void)[] = [];
  #toldToLeave = false;

  private constructor(socket: Socket, onEarlyDeath: () => void) {
    this.#socket = socket;
    readLines(socket, () => this.#answers.shift()?.());
    socket.once('close', () => {
      for (const answer of this.#answers.splice(0)) answer();
      if (!this.#toldToLeave) onEarlyDeath();
    });
  }

  /** Rejects when no such epoch lives. */
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

  /** Resolves when it is done, or nobody is left to do it. */
  ask(request: Request): Promise<void> {
    if (request === 'terminate') this.#toldToLeave = true;
    if (this.#socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#answers.push(resolve);
      this.#socket.write(`${request}\n`);
    });
  }
}

/** Takes what a child asks. Rejects when another epoch has this place: Envoy exits then. */
export function listenForChild(
  { epoch, baseId }: { epoch: number; baseId: number },
  on: { readonly attached: () => void; readonly asked: (request: Request) => Promise<void> },
): Promise<Server> {
  const server = createServer((socket) => {
    on.attached();
    readLines(socket, async (line) => {
      await on.asked(line as Request);
      socket.write('done\n');
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketName(baseId, epoch), () => resolve(server));
  });
}
