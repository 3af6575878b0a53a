/** Connects this process to addresses in a node's network namespace. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import type { NodeNamespaces } from './node-namespaces.ts';

export class NodeDialer {
  readonly #child: ChildProcess;
  readonly #socket: string;
  readonly #servers: Server[] = [];
  readonly #clients = new Set<Socket>();

  private constructor(child: ChildProcess, socket: string) {
    this.#child = child;
    this.#socket = socket;
  }

  static async start(namespaces: NodeNamespaces, folder: string): Promise<NodeDialer> {
    const socket = join(folder, 'dial.sock');
    const [program = '', ...prefix] = namespaces.networkPrefix;
    const args = [...prefix, process.execPath, join(packageRoot(), 'test/node/dialer.ts'), socket];
    const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    endWithRunner(child);
    await once(child.stdout!, 'data');
    return new NodeDialer(child, socket);
  }

  connect(host: string, port: number): Socket {
    const socket = connect(this.#socket);
    socket.write(`${host} ${port}\n`);
    return socket;
  }

  /** Listens at loopback and connects each client to an address in the namespace. */
  async forward(localPort: number, host: string, port: number): Promise<void> {
    const server = createServer((client) => {
      const remote = this.connect(host, port);
      this.#clients.add(client);
      client.on('error', () => remote.destroy());
      remote.on('error', () => client.destroy());
      client.on('close', () => {
        this.#clients.delete(client);
        remote.destroy();
      });
      remote.on('close', () => client.destroy());
      client.pipe(remote).pipe(client);
    });
    this.#servers.push(server);
    server.listen(localPort, '127.0.0.1');
    await once(server, 'listening');
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    for (const server of this.#servers) server.close();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exitEvent = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exitEvent;
  }
}
