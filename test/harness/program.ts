import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { defaultDeadlineMs, eventually } from './eventually.ts';
import { endWithRunner } from './runner-watch.ts';

export interface ProgramOptions {
  /** The folder of the wrappers (default: `bin/` of this checkout). */
  readonly binFolder?: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** File that also receives the program's output. */
  readonly logFile?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const maxKeptLines = 20_000;

const livingChildren = new Set<ChildProcess>();

// Stops the started programs when this process exits, also on an uncaught error. (`endWithRunner` handles a killed process.)
process.once('exit', () => {
  for (const child of livingChildren) child.kill('SIGKILL');
});

/** A started program with its output on both streams. */
export class Program {
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Set when the program has exited and its output is complete. */
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
        if (this.lines.length > maxKeptLines) this.lines.shift();
        log?.write(`${line}\n`);
      });
    }
    livingChildren.add(child);
    endWithRunner(child);
    this.exited = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', () => livingChildren.delete(child));
      child.on('close', (code, signal) => {
        this.exit = { code, signal };
        log?.end();
        resolve(this.exit);
      });
    });
    this.exited.catch(() => {});
  }

  /** Starts a wrapper in `bin/`, such as `pilot-agent`, without a shell in between. */
  static start(wrapper: string, options: ProgramOptions, name = wrapper): Program {
    return Program.run(name, join(options.binFolder ?? join(packageRoot(), 'bin'), wrapper), options);
  }

  /** Starts any executable; the name appears in error messages. */
  static run(name: string, executable: string, { args, env, cwd, logFile }: ProgramOptions): Program {
    // A separate process group: Ctrl-C at a terminal reaches only the parent, which then stops the programs in order.
    const child = spawn(executable, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    return new Program(name, child, logFile === undefined ? undefined : createWriteStream(logFile, { flags: 'a' }));
  }

  /** Both outputs so far. */
  output(): string {
    return this.lines.join('\n');
  }

  /**
   * Waits for a matching line, starting at line `fromLine`.
   * @returns the line
   */
  async line(pattern: RegExp, { deadlineMs = defaultDeadlineMs, fromLine = 0 } = {}): Promise<string> {
    return eventually(`${this.name} prints ${pattern}`, () => this.lines.slice(fromLine).find((l) => pattern.test(l)), {
      deadlineMs,
      hopeless: () => this.hopeless(),
    });
  }

  /** Returns why waiting for the program is pointless, if it has exited. Includes its last output. */
  hopeless(): string | undefined {
    if (this.exit === undefined) return undefined;
    const exitReason = this.exit.signal ?? `exit code ${this.exit.code}`;
    return `${this.name} ended with ${exitReason}; its last lines:\n${this.lines.slice(-15).join('\n')}`;
  }

  /** Sends a signal; does nothing if the program has exited. */
  signal(signal: NodeJS.Signals): void {
    if (this.exit === undefined) this.#child.kill(signal);
  }

  /** Signals the program to exit, and kills it after the deadline. */
  async stop({ signal = 'SIGTERM' as NodeJS.Signals, deadlineMs = 60_000 } = {}): Promise<Exit> {
    this.signal(signal);
    const inTime = await Promise.race([this.exited.then(() => true), sleep(deadlineMs, false, { ref: false })]);
    if (!inTime) this.signal('SIGKILL');
    return this.exited;
  }
}
