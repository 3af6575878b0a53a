import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually, patienceMs } from './eventually.ts';
import { endWithRunner } from './runner-watch.ts';

export interface ProgramOptions {
  /** The folder of the wrappers; `bin/` of this checkout unless given. */
  readonly binFolder?: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Everything the program prints is also written here. */
  readonly logFile?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const linesKept = 20_000;

const living = new Set<ChildProcess>();

// Stops the started programs whatever ends this process, an uncaught error too. (`endWithRunner` handles the rest.)
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

/** A started program, and its output on both streams. */
export class Program {
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Set once the program has ended and its output is complete. */
  exit: Exit | undefined;
  readonly lines: string[] = [];
  readonly #child: ChildProcess;

  private constructor(name: string, child: ChildProcess, log: WriteStream | undefined) {
    this.name = name;
    this.pid = child.pid ?? 0;
    this.#child = child;
    for (const output of [child.stdout!, child.stderr!]) {
      createInterface({ input: output }).on('line', (line) => {
        this.lines.push(line);
        if (this.lines.length > linesKept) this.lines.shift();
        log?.write(`${line}\n`);
      });
    }
    living.add(child);
    endWithRunner(child);
    this.exited = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', () => living.delete(child));
      child.on('close', (code, signal) => {
        this.exit = { code, signal };
        log?.end();
        resolve(this.exit);
      });
    });
    this.exited.catch(() => {});
  }

  /** Starts one of the wrappers in `bin/`, e.g. `pilot-agent`. It is its own process, with no shell that stays between. */
  static start(wrapper: string, options: ProgramOptions, name = wrapper): Program {
    return Program.run(name, join(options.binFolder ?? join(packageRoot(), 'bin'), wrapper), options);
  }

  /** Starts any executable under a name for error messages. */
  static run(name: string, executable: string, { args, env, cwd, logFile }: ProgramOptions): Program {
    // Its own process group: Ctrl-C at a terminal reaches only the parent, which then stops the programs in order.
    const child = spawn(executable, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    return new Program(name, child, logFile === undefined ? undefined : createWriteStream(logFile, { flags: 'a' }));
  }

  /** Both outputs so far. */
  output(): string {
    return this.lines.join('\n');
  }

  /** Waits for a line that matches, from the `fromLine`-th on. @returns the line. */
  async line(pattern: RegExp, { deadlineMs = patienceMs, fromLine = 0 } = {}): Promise<string> {
    return eventually(`${this.name} prints ${pattern}`, () => this.lines.slice(fromLine).find((l) => pattern.test(l)), {
      deadlineMs,
      hopeless: () => this.hopeless(),
    });
  }

  /** Why waiting for the program is pointless: it has exited. With its last output. */
  hopeless(): string | undefined {
    if (this.exit === undefined) return undefined;
    const how = this.exit.signal ?? `exit code ${this.exit.code}`;
    return `${this.name} ended with ${how}; its last lines:\n${this.lines.slice(-15).join('\n')}`;
  }

  /** Sends a signal; nothing when the program has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.exit === undefined) this.#child.kill(signal);
  }

  /** Requests the program to exit, and kills it after the deadline. */
  async stop({ signal = 'SIGTERM' as NodeJS.Signals, deadlineMs = 60_000 } = {}): Promise<Exit> {
    this.signal(signal);
    const inTime = await Promise.race([this.exited.then(() => true), sleep(deadlineMs, false, { ref: false })]);
    if (!inTime) this.signal('SIGKILL');
    return this.exited;
  }
}
