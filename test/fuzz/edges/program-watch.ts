/** Checks the health of a program after an attack, from outside. */
import { readFileSync } from 'node:fs';
import { loggedLine } from '../../harness/logged-line.ts';
import type { Program } from '../../harness/program.ts';

export interface ProgramLimits {
  readonly maxResidentMiB: number;
  /** Maximum response time for a well-behaved client, in milliseconds. */
  readonly maxResponseMs: number;
}

const stack = /\bat .*?(?:file:|node:|\/)[^ ]+:\d+:\d+/i;
const fences = (
  [
    'fault.uncaught',
    'stream.failed',
    'stream.openFailed',
    'connection.failed',
    'push.failed',
    'http.requestFailed',
  ] as const
).map((event) => loggedLine(event));
/** Whether a log line reports an uncaught error: a stack trace, or the event of an error boundary. */
const isEscaped = (line: string): boolean => stack.test(line) || fences.some((fence) => fence.test(line));

export class ProgramWatch {
  readonly #program: Program;
  readonly #limits: ProgramLimits;
  #readLineCount = 0;

  constructor(program: Program, limits: ProgramLimits) {
    this.#program = program;
    this.#limits = limits;
  }

  /** @param url responds with 200 if the program is healthy */
  async findProblems(url: string): Promise<string[]> {
    const exitReason = this.#program.hopeless();
    if (exitReason !== undefined) return [exitReason];
    return [...(await this.#responseProblems(url)), ...this.#memoryProblems(), ...this.#complaints()];
  }

  async #responseProblems(url: string): Promise<string[]> {
    const { maxResponseMs } = this.#limits;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(maxResponseMs) });
      const body = await response.text();
      return response.status === 200 ? [] : [`${url} responds with ${response.status} ${body.slice(0, 200)}`];
    } catch (error) {
      const exitReason = this.#program.hopeless();
      return [exitReason ?? `${url} does not respond within ${maxResponseMs} ms: ${String(error)}`];
    }
  }

  #memoryProblems(): string[] {
    const status = readFileSync(`/proc/${this.#program.pid}/status`, 'utf8');
    const residentMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
    const { maxResidentMiB } = this.#limits;
    return residentMiB <= maxResidentMiB ? [] : [`${this.#program.name} holds ${Math.round(residentMiB)} MiB`];
  }

  #complaints(): string[] {
    const { lines } = this.#program;
    // The program's log buffer drops its oldest lines.
    const newLines = lines.slice(Math.min(this.#readLineCount, lines.length));
    this.#readLineCount = lines.length;
    return newLines
      .filter(isEscaped)
      .slice(0, 3)
      .map((line) => `${this.#program.name} says: ${line}`);
  }
}
