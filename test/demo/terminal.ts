/** Runs commands like a user: prints each command before it runs, and its output. */
import { createHash } from 'node:crypto';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { Program } from '../harness/program.ts';

export interface TerminalOptions {
  /** Working directory of all commands. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Folders that precede `PATH`. */
  readonly path: readonly string[];
  readonly logFolder: string;
  readonly print: (line: string) => void;
}

/** Maximum lines of a command's output. */
const maxPrintedLines = 14;

export class DemoTerminal {
  readonly #options: TerminalOptions;
  readonly #env: NodeJS.ProcessEnv;

  constructor(options: TerminalOptions) {
    this.#options = options;
    this.#env = { ...options.env, PATH: [...options.path, process.env.PATH].join(delimiter) };
  }

  /** Prints a comment of the user. */
  comment(text: string): void {
    this.#options.print(`\n# ${text}`);
  }

  /** @returns standard output; @throws Error with both outputs if it fails */
  async run(command: string): Promise<string> {
    this.#options.print(`$ ${command}`);
    const { stdout, all, failed } = await this.#execute(command);
    this.#printOutput(all);
    if (failed) throw new Error(`failed: ${command}\n${all}`);
    return stdout;
  }

  /** Runs a command that must fail. @returns both outputs */
  async runFailing(command: string): Promise<string> {
    this.#options.print(`$ ${command}`);
    const { all, failed } = await this.#execute(command);
    this.#printOutput(all);
    if (!failed) throw new Error(`must fail, but has exit code 0: ${command}\n${all}`);
    return all;
  }

  /** Runs a command that was printed before. @returns standard output, or the reason of the failure */
  async repeat(command: string): Promise<string> {
    const { stdout, all, failed } = await this.#execute(command);
    return failed ? all : stdout;
  }

  /** Starts a command that runs until the demo ends. Resolves when it prints a line that matches `ready`. */
  async start(command: string, ready: RegExp): Promise<Program> {
    this.#options.print(`$ ${command} &`);
    const { folder: cwd, logFolder } = this.#options;
    const logFile = join(logFolder, `${createHash('sha256').update(command).digest('hex').slice(0, 8)}.log`);
    const program = Program.run(command, 'sh', { args: ['-c', `exec ${command}`], cwd, env: this.#env, logFile });
    await program.line(ready);
    return program;
  }

  async #execute(command: string) {
    const { folder: cwd } = this.#options;
    const result = await execa('sh', ['-c', command], {
      ...{ cwd, env: this.#env, extendEnv: false, all: true, reject: false, stdin: 'ignore' },
    });
    return { stdout: String(result.stdout ?? ''), all: String(result.all ?? ''), failed: result.failed };
  }

  #printOutput(output: string): void {
    const lines = output.split('\n').filter((line) => line.trim() !== '');
    for (const line of lines.slice(0, maxPrintedLines)) this.#options.print(`  ${line}`);
    if (lines.length > maxPrintedLines) this.#options.print(`  … ${lines.length - maxPrintedLines} more lines`);
  }
}
