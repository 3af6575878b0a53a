/**
 * Ports that stay open when their agent ends. A shell beside the agent has its sockets too, and reads from a pipe whose other end is the
 * agent's alone. That pipe ends with the agent, however that ends: then the shell becomes the stand-in (port-stand-in.ts), which passes on what
 * has come meanwhile to the next agent (passed-on.ts). A question that nobody reads waits in the kernel until then, and a connection likewise.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KeptSocket, PassedPort } from './kept-socket.ts';

const standIn = fileURLToPath(new URL(`./port-stand-in${extname(import.meta.filename)}`, import.meta.url));
/** The first file of the shell that is none of the usual three. */
const firstFd = 3;
/** Somebody's word is that all ends in order; no word at all is that the agent has ended. */
const script = 'read -r word && exit 0; exec "$@"';

export class PortKeeper {
  readonly #directory: string;
  readonly #kept = new Map<PassedPort, readonly KeptSocket[]>();
  #shell: ChildProcess | undefined;
  #due: NodeJS.Immediate | undefined;
  #isOver = false;

  /** @param directory where the next agent can be found */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** These sockets are open from now on, and no others of this port. */
  keep(port: PassedPort, sockets: readonly KeptSocket[]): void {
    this.#kept.set(port, sockets);
    // The shell is started at once: an agent may be killed in its next turn.
    if (!this.#isOver) this.#start();
  }

  forget(port: PassedPort): void {
    if (this.#kept.delete(port)) this.#settle();
  }

  /**
   * Another agent has the right to decide: what comes to these sockets from now on is passed on to it. Those that were closed in this turn,
   * because this agent ends, are kept.
   */
  letGo(): void {
    clearImmediate(this.#due);
    this.#isOver = true;
    this.#shell?.stdin?.destroy();
  }

  /** All ends: nobody is to have these ports. */
  end(): void {
    clearImmediate(this.#due);
    this.#isOver = true;
    this.#shell?.kill('SIGKILL');
    this.#shell = undefined;
  }

  /** Tells the shell, in a turn of its own: sockets that are closed because this agent ends may be kept. */
  #settle(): void {
    if (this.#isOver || this.#due !== undefined) return;
    this.#due = setImmediate(() => this.#start());
  }

  #start(): void {
    clearImmediate(this.#due);
    this.#due = undefined;
    const before = this.#shell;
    this.#shell = this.#made();
    before?.kill('SIGKILL');
  }

  #made(): ChildProcess | undefined {
    const open = [...this.#kept].flatMap(([port, sockets]) =>
      sockets.flatMap(({ transport, address, fd }) => {
        const number = fd();
        return number === undefined ? [] : [{ port, transport, address, number }];
      }),
    );
    if (open.length === 0) return undefined;
    const said = open.map(({ number: _, ...socket }, index) => ({ ...socket, fd: firstFd + index }));
    // Its SIGUSR1 opens no inspector: see bin/find-node.sh.
    const flags = ['--inspect-port=192.0.2.1:9229', '--max-semi-space-size=1'];
    const program = [process.execPath, ...flags, standIn, this.#directory];
    // In a session of its own: no terminal's signal reaches it.
    const shell = spawn('/bin/sh', ['-c', script, 'port-stand-in', ...program, JSON.stringify(said)], {
      stdio: ['pipe', 'ignore', 'ignore', ...open.map(({ number }) => number)],
      detached: true,
    });
    // Where there is no process to be had, ports close with their agent.
    shell.on('error', () => {});
    shell.stdin?.on('error', () => {});
    (shell.stdin as Socket | null)?.unref();
    shell.unref();
    return shell;
  }
}
