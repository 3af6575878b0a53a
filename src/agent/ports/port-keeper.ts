/**
 * A shell inherits the sockets and reads from a pipe of the agent. When the agent exits in any way, the pipe closes, and the shell becomes the
 * stand-in (port-stand-in.ts), which passes queries and connections to the next agent (passed-on.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KeptSocket, PassedPort } from './kept-socket.ts';

const standInScript = fileURLToPath(new URL(`./port-stand-in${extname(import.meta.filename)}`, import.meta.url));
const firstFd = 3;
/** A line means a normal exit, end of file a killed agent. */
const script = 'read -r word && exit 0; exec "$@"';

export class PortKeeper {
  readonly #directory: string;
  readonly #socketsByPort = new Map<PassedPort, readonly KeptSocket[]>();
  #shell: ChildProcess | undefined;
  #restartTimer: NodeJS.Immediate | undefined;
  #isClosed = false;

  /** @param directory of the socket at which the next agent listens */
  constructor(directory: string) {
    this.#directory = directory;
  }

  keep(port: PassedPort, sockets: readonly KeptSocket[]): void {
    this.#socketsByPort.set(port, sockets);
    // Start the shell now, because the agent may be killed in the next event loop iteration.
    if (!this.#isClosed) this.#start();
  }

  release(port: PassedPort): void {
    if (this.#socketsByPort.delete(port)) this.#scheduleRestart();
  }

  /** Another agent, which now serves, receives queries and connections of these sockets. */
  handOver(): void {
    clearImmediate(this.#restartTimer);
    this.#isClosed = true;
    this.#shell?.stdin?.destroy();
  }

  close(): void {
    clearImmediate(this.#restartTimer);
    this.#isClosed = true;
    this.#shell?.kill('SIGKILL');
    this.#shell = undefined;
  }

  /** Restarts the shell in the next event loop iteration, because sockets that close when this agent exits may have to be kept. */
  #scheduleRestart(): void {
    if (this.#isClosed || this.#restartTimer !== undefined) return;
    this.#restartTimer = setImmediate(() => this.#start());
  }

  #start(): void {
    clearImmediate(this.#restartTimer);
    this.#restartTimer = undefined;
    const previousShell = this.#shell;
    this.#shell = this.#spawnShell();
    previousShell?.kill('SIGKILL');
  }

  #spawnShell(): ChildProcess | undefined {
    const openSockets = [...this.#socketsByPort].flatMap(([port, sockets]) =>
      sockets.flatMap(({ transport, address, fd }) => {
        const number = fd();
        return number === undefined ? [] : [{ port, transport, address, number }];
      }),
    );
    if (openSockets.length === 0) return undefined;
    const descriptions = openSockets.map(({ number: _, ...socket }, index) => ({ ...socket, fd: firstFd + index }));
    // Prevents SIGUSR1 from opening an inspector, see bin/find-node.sh.
    const flags = ['--inspect-port=192.0.2.1:9229', '--max-semi-space-size=1'];
    const program = [process.execPath, ...flags, standInScript, this.#directory];
    // In its own session, so that it receives no signals of the terminal.
    const shell = spawn('/bin/sh', ['-c', script, 'port-stand-in', ...program, JSON.stringify(descriptions)], {
      stdio: ['pipe', 'ignore', 'ignore', ...openSockets.map(({ number }) => number)],
      detached: true,
    });
    // If no process can be started, the ports close with the agent.
    shell.on('error', () => {});
    shell.stdin?.on('error', () => {});
    (shell.stdin as Socket | null)?.unref();
    shell.unref();
    return shell;
  }
}
