/** The test's end of the connection: accepts fake Envoys, sends them their initial behaviour, and sends commands. */
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../harness/eventually.ts';
import { readLines } from './lines.ts';
import { type Beginning, controlSocketName, type Hello, type Order, type StandInReport } from './orders.ts';

/** Value for `--binaryPath`. */
export const standInBinary = join(import.meta.dirname, 'envoy');

/** A connected fake Envoy. */
export class StandInProcess {
  readonly hello: Hello;
  readonly reports: StandInReport[] = [];
  hasExited = false;
  readonly #socket: Socket;

  constructor(hello: Hello, socket: Socket) {
    this.hello = hello;
    this.#socket = socket;
    socket.once('close', () => {
      this.hasExited = true;
    });
  }

  /** Sends a command; waits until it was executed or the process has ended. */
  async order(order: Order): Promise<void> {
    const previouslyObeyed = this.#countObeyed();
    this.#socket.write(`${JSON.stringify(order)}\n`);
    await eventually(`${order.order} is done`, () => this.hasExited || this.#countObeyed() > previouslyObeyed, {
      everyMs: 2,
    });
  }

  signals(): string[] {
    return this.reports.flatMap((report) => (report.report === 'signal' ? [report.signal] : []));
  }

  #countObeyed(): number {
    return this.reports.filter(({ report }) => report === 'obeyed').length;
  }
}

export class Control {
  /** All connected fake Envoys in order. */
  readonly seen: StandInProcess[] = [];
  /** Returns the initial behaviour of a new fake Envoy; a test may replace the function at any time. */
  begin: (hello: Hello) => Beginning | Promise<Beginning> = () => ({});
  readonly #server: Server;
  readonly #path: string;

  private constructor(server: Server, path: string) {
    this.#server = server;
    this.#path = path;
  }

  /** @param configFolder folder in which the agent writes Envoy's configuration; its path must have at most 100 characters */
  static async listen(configFolder: string): Promise<Control> {
    const path = join(configFolder, controlSocketName);
    const server = createServer((socket) => control.#meet(socket));
    const control = new Control(server, path);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    return control;
  }

  /** Running fake Envoys that serve or start to serve. */
  get serving(): StandInProcess[] {
    return this.seen.filter(({ hello, hasExited }) => hello.mode === 'serve' && !hasExited);
  }

  /** Waits for a fake Envoy that serves with this epoch and, if given, this base ID. */
  async epoch(epoch: number, baseId?: number): Promise<StandInProcess> {
    return eventually(`epoch ${epoch} says hello`, () =>
      this.serving.findLast(({ hello }) => hello.epoch === epoch && (baseId ?? hello.baseId) === hello.baseId),
    );
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#path, { force: true });
  }

  #meet(socket: Socket): void {
    let process: StandInProcess | undefined;
    readLines(socket, async (line) => {
      if (process !== undefined) {
        process.reports.push(JSON.parse(line) as StandInReport);
        return;
      }
      process = new StandInProcess(JSON.parse(line) as Hello, socket);
      this.seen.push(process);
      socket.write(`${JSON.stringify(await this.begin(process.hello))}\n`);
    });
  }
}
