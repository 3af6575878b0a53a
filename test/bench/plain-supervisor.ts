/**
 * The baseline of `npm run bench:faults`: like most supervisors, it does not know its program. It restarts Envoy after an exit, and terminates and
 * restarts it after a certificate change. It has no hot restart, drain or configuration check.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { parentDeathGuard } from '../../src/agent/envoy/parent-death.ts';

const usage = 'usage: plain-supervisor.ts --watch DIRECTORY --watch-delay-ms MS --log FILE -- ENVOY ARGUMENT…';

/** Pause after an unexpected exit: systemd's default RestartSec. */
const restartPauseMs = 100;
const watchEveryMs = 50;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Runs one Envoy at a time. */
class PlainSupervisor {
  readonly #command: readonly string[];
  readonly #log: number;
  #child: ChildProcess | undefined;
  #isStopOrdered = false;
  #isEnding = false;

  constructor(command: readonly string[], logFile: string) {
    this.#command = command;
    this.#log = openSync(logFile, 'a');
  }

  start(): void {
    const [file, ...args] = this.#command;
    const child = spawn(file!, args, { stdio: ['ignore', this.#log, this.#log] });
    this.#child = child;
    this.#isStopOrdered = false;
    child.once('error', (error) => {
      print(`cannot start Envoy: ${error.message}`);
      process.exit(1);
    });
    child.once('exit', (code, signal) => void this.#handleExit(code, signal));
  }

  /** Does nothing without a running Envoy, because the next one reads the new files. */
  restart(): void {
    this.#isStopOrdered = true;
    this.#child?.kill('SIGTERM');
  }

  end(): void {
    this.#isEnding = true;
    if (this.#child === undefined) process.exit(0);
    this.#child.kill('SIGTERM');
  }

  async #handleExit(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    print(`Envoy ended: ${signal ?? `exit code ${code}`}`);
    this.#child = undefined;
    if (!this.#isStopOrdered && !this.#isEnding) await sleep(restartPauseMs);
    if (this.#isEnding) process.exit(0);
    this.start();
  }
}

/** Digest of the certificate files. Unreadable files are skipped. */
function digestOf(directory: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(directory).sort()) {
    if (!/\.(crt|key)$/.test(name)) continue;
    try {
      hash.update(readFileSync(join(directory, name)));
    } catch {
      // A removed file is a change, too.
    }
  }
  return hash.digest('hex');
}

async function watch(directory: string, delayMs: number, onChange: () => void): Promise<never> {
  for (let lastDigest = digestOf(directory); ; await sleep(watchEveryMs)) {
    if (digestOf(directory) === lastDigest) continue;
    await sleep(delayMs);
    lastDigest = digestOf(directory);
    onChange();
  }
}

const { values, positionals } = parseArgs({
  options: { watch: { type: 'string' }, 'watch-delay-ms': { type: 'string' }, log: { type: 'string' } },
  allowPositionals: true,
});
if (values.watch === undefined || values.log === undefined || positionals.length === 0) {
  process.stderr.write(`${usage}\n`);
  process.exit(2);
}
// Envoy sets its own parent-death signal only if hot restart is on.
const supervisor = new PlainSupervisor([...(await parentDeathGuard()), ...positionals], values.log);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => supervisor.end());
process.on('SIGHUP', () => supervisor.restart());
supervisor.start();
await watch(values.watch, Number(values['watch-delay-ms'] ?? 0), () => supervisor.restart());
