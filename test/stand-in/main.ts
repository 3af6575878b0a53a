/** The fake Envoy process from its command line to its exit. */
import { createConnection, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { AdminInterface } from './admin.ts';
import { listenForChild, Parent, SharedMemory } from './family.ts';
import { adminAddressOf, hotRestartVersion, parseFlags, type StandInFlags } from './flags.ts';
import { readLines } from './lines.ts';
import { type Beginning, controlSocketName, type Hello, type Order, type StandInReport } from './orders.ts';

/** Time after which an orphaned child aborts when its parent exits early: 5 s to its next call, and ten attempts of 1 s (fact 4). */
const orphanedMs = 15_000;
/** A child without parent makes ten attempts, a second apart. The stand-in waits less, because no test depends on it. */
const noParentMs = 300;

function logLine(level: 'info' | 'warning' | 'error' | 'critical', text: string): void {
  process.stderr.write(`${new Date().toISOString()}\t${level}\tenvoy main\t${text}\n`);
}

/** Prints an error message and exits like Envoy. */
function exitWithMessage(code: number, lastWords?: string): void {
  if (lastWords === undefined) process.exit(code);
  process.stderr.write(`${lastWords}\n`, () => process.exit(code));
}

class StandIn {
  readonly #flags: StandInFlags;
  readonly #admin: AdminInterface;
  readonly #sharedMemory: SharedMemory;
  #control: Socket | undefined;
  #parent: Parent | undefined;
  #live = false;

  constructor(flags: StandInFlags) {
    this.#flags = flags;
    this.#sharedMemory = new SharedMemory(flags.baseId);
    this.#admin = new AdminInterface(flags, (path) => {
      this.#sendReport({ report: 'admin', path });
      if (path === '/quitquitquit') setImmediate(() => exitWithMessage(0));
    });
  }

  async run(): Promise<void> {
    const beginning = await this.#report();
    this.#handleSignals(beginning.ignores ?? []);
    if (beginning.exit !== undefined) return exitWithMessage(beginning.exit.code, beginning.exit.lastWords);
    const { mode, configFile, configYaml } = this.#flags;
    // A validation of a configuration on the command line needs no admin interface.
    if (mode === 'validate' && configFile === '' && configYaml !== '') return exitWithMessage(0, `configuration '' OK`);
    const address = adminAddressOf(configFile);
    if (mode === 'validate') return exitWithMessage(0, `configuration '${configFile}' OK`);
    logLine('info', `initializing epoch ${this.#flags.epoch}`);
    if (!(await this.#join())) return;
    if (beginning.noAdmin !== true) await this.#admin.open(address);
    if (beginning.live !== 'on order') await this.#goLive();
  }

  /** Connects to the test and requests the initial behaviour. Without a listening test, the default applies. */
  #report(): Promise<Beginning> {
    const { mode, epoch, baseId, configFile } = this.#flags;
    const socket = createConnection(join(dirname(configFile), controlSocketName));
    return new Promise((resolve) => {
      socket.once('error', () => resolve({}));
      socket.once('connect', () => {
        this.#control = socket;
        const hello: Hello = { pid: process.pid, mode, epoch, baseId, args: process.argv.slice(2) };
        socket.write(`${JSON.stringify(hello)}\n`);
        let hasStarted = false;
        readLines(socket, (line) => {
          if (hasStarted) void this.#obey(JSON.parse(line) as Order);
          else resolve(JSON.parse(line) as Beginning);
          hasStarted = true;
        });
      });
    });
  }

  /** Joins the epochs of its base ID. Returns false if it exited. */
  async #join(): Promise<boolean> {
    const { epoch } = this.#flags;
    try {
      await listenForChild(this.#flags, {
        // Its own parent exits immediately when a child attaches (fact 5).
        onAttach: () => void this.#parent?.request('terminate'),
        onRequest: (request) => this.#serveChild(request),
      });
    } catch {
      exitWithMessage(1, `unable to bind domain socket with base_id=${this.#flags.baseId}, id=${epoch % 3}, errno=98`);
      return false;
    }
    if (epoch === 0) {
      this.#sharedMemory.create();
      return true;
    }
    if (this.#sharedMemory.initializing) {
      exitWithMessage(1, 'previous envoy process is still initializing');
      return false;
    }
    this.#sharedMemory.initializing = true;
    try {
      this.#parent = await Parent.attach(this.#flags, () => this.#abortLater());
    } catch {
      logLine('warning', 'hot restart sendmsg() connection refused, retrying');
      setTimeout(() => process.kill(process.pid, 'SIGABRT'), noParentMs);
      return false;
    }
    await this.#parent.request('give up admin');
    return true;
  }

  async #goLive(): Promise<void> {
    if (this.#live) return;
    this.#live = true;
    if (this.#flags.epoch > 0) this.#sharedMemory.initializing = false;
    this.#admin.state = 'LIVE';
    logLine('info', 'starting main dispatch loop');
    this.#sendReport({ report: 'live' });
    const parent = this.#parent;
    await parent?.request('drain');
    if (parent !== undefined) setTimeout(() => void parent.request('terminate'), this.#flags.parentShutdownMs);
  }

  async #serveChild(request: 'give up admin' | 'drain' | 'terminate'): Promise<void> {
    if (request === 'give up admin') {
      logLine('warning', 'shutting down admin due to child startup');
      await this.#admin.close();
    }
    if (request === 'drain') logLine('warning', 'closing and draining listeners');
    if (request === 'terminate') {
      logLine('warning', 'shutting down due to child request');
      setImmediate(() => exitWithMessage(0));
    }
  }

  #abortLater(): void {
    logLine('error', 'hot restart sendmsg() connection refused, retrying');
    setTimeout(() => process.kill(process.pid, 'SIGABRT'), orphanedMs);
  }

  #handleSignals(ignoredSignals: readonly string[]): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, async () => {
        this.#sendReport({ report: 'signal', signal });
        if (ignoredSignals.includes(signal)) return;
        logLine('warning', `caught ENVOY_${signal}`);
        // A child that is not live stops the parent, too (fact 3).
        await this.#parent?.request('terminate');
        exitWithMessage(0);
      });
    }
    for (const signal of ['SIGHUP', 'SIGUSR1'] as const) {
      process.on(signal, () => this.#sendReport({ report: 'signal', signal }));
    }
  }

  async #obey(order: Order): Promise<void> {
    switch (order.order) {
      case 'live':
        await this.#goLive();
        break;
      case 'exit':
        return exitWithMessage(order.code, order.lastWords);
      case 'crash':
        process.removeAllListeners(order.signal);
        process.kill(process.pid, order.signal);
        return;
      case 'print':
        process.stderr.write(order.text);
        break;
      case 'flood':
        await flood(order.lines);
        break;
      case 'admin':
        this.#admin.behaviour = order.behaviour;
        break;
      case 'garble admin':
        this.#admin.behaviour = Buffer.from(order.bytes, 'base64');
        break;
      case 'requests':
        this.#admin.requestsInFlight = order.active;
        break;
      case 'refuse children':
        this.#sharedMemory.initializing = true;
        break;
    }
    this.#sendReport({ report: 'obeyed' });
  }

  #sendReport(report: StandInReport): void {
    this.#control?.write(`${JSON.stringify(report)}\n`);
  }
}

/** Waits while the output is not read, like Envoy's threads. */
async function flood(lines: number): Promise<void> {
  for (let line = 1; line <= lines; line++) {
    const hasCapacity = process.stderr.write(
      `${new Date().toISOString()}\tinfo\tenvoy main\tflood ${line} of ${lines}\n`,
    );
    if (!hasCapacity) await new Promise((resolve) => process.stderr.once('drain', resolve));
  }
}

try {
  const flags = parseFlags(process.argv.slice(2));
  if (flags === 'version') process.stdout.write('envoy  version: stand-in\n');
  // Envoy prints this version on standard error.
  else if (flags === 'hot restart version') process.stderr.write(`${hotRestartVersion}\n`);
  else await new StandIn(flags).run();
} catch (error) {
  const messageText = error instanceof Error ? error.message : String(error);
  logLine('critical', `error \`${messageText}\` initializing config`);
  exitWithMessage(1, messageText);
}
