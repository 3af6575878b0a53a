/**
 * An Envoy that outlives its agent: its parent is a shell that waits for it and does nothing else. Envoy ties itself to the thread that
 * spawned it (spec/envoy-hot-restart.md fact 8), and that is the shell's. What the next agent needs lies in a folder of its own:
 *
 * - `wrapper` and `envoy`: process number and start time of either, written by the shell;
 * - `exit`: the exit code, as a shell has it (128 and more: a signal), once Envoy is gone.
 *
 * The shell holds the writing end of a life pipe: whoever reads it learns of Envoy's end, also one who is no parent. And it holds the reading
 * ends of Envoy's outputs, so that Envoy can write while no agent reads: 64 KiB, then it would wait.
 */
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { constants, mkdirSync, openSync, readlinkSync, rmdirSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSystemError } from '../../runtime/errors.ts';
import { startTimeOf } from './base-ids/base-ids.ts';
import type { HeldChannels } from './output/output-channels.ts';
import { removeQuietly, textOf } from './quiet-files.ts';

/** A process that no other one can be taken for. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/pid/stat. */
  readonly startTime: string;
}

/** `exited`: its code or signal; both null: it is gone, and nobody has seen how. */
export interface HeldEnvoyEvents {
  spawn: [];
  error: [Error];
  exit: [code: number | null, signal: NodeJS.Signals | null];
}

/** The shell's own open files. */
const lifeFd = 3;
const stdoutReaderFd = 4;
const stderrReaderFd = 5;
/** Open as long as the shell lives: {@link file://./record-owner.ts}. */
const livingFd = 6;

/**
 * An Envoy that ended before the shell could look at it has the start time 0. Signals wake `wait`, whose answer counts only when Envoy is
 * gone; they have handlers, as Envoy would inherit it if they were ignored. Where the folder is gone, the next agent has been there before
 * the shell: then no Envoy is started.
 */
const wrapper = `
trap : HUP INT QUIT TERM USR1 USR2
folder=$1
shift
start_of() { read -r line <"/proc/$1/stat" && set -- \${line##*) } && start=\${20}; }
start_of $$ && echo "$$ $start" >"$folder/wrapper" || exit 70
"$@" ${lifeFd}>&- ${stdoutReaderFd}<&- ${stderrReaderFd}<&- ${livingFd}<&- &
envoy=$!
exec >/dev/null 2>&1
start_of $envoy || start=0
echo "$envoy $start" >"$folder/envoy"
while :; do
  wait $envoy
  code=$?
  kill -0 $envoy || break
done
echo "$code" >"$folder/exit"
`;

/** From the start of the shell until Envoy has a process: a fork, on a machine that may be busy. */
const startLimitMs = 10_000;
const pollMs = 2;
const lastWaitMs = 20;

/** What a process table, and whoever reports its exit, needs of a process: a child's or not. */
export class HeldEnvoy extends EventEmitter<HeldEnvoyEvents> {
  readonly folder: string;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  readonly #life: Readable;
  #envoy: ProcessIdentity | undefined;
  #wrapper: ProcessIdentity | undefined;
  #killedEarly = false;
  #over = false;

  private constructor(
    folder: string,
    { stdout, stderr, life }: { stdout: Readable | null; stderr: Readable | null; life: Readable },
  ) {
    super();
    this.folder = folder;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#life = life;
    life.on('data', () => {});
    life.on('error', () => life.destroy());
    life.once('close', () => this.#ended());
  }

  /**
   * Starts an Envoy in a new folder.
   *
   * @param living a file of ours that says to others that this container lives
   * @throws Error of the operating system
   */
  static start(folder: string, command: readonly string[], channels: HeldChannels, living?: number): HeldEnvoy {
    mkdirSync(folder, { mode: 0o700 });
    const { stdout, stderr, life } = channels;
    const held = new HeldEnvoy(folder, { stdout: stdout.stream ?? null, stderr: stderr.stream, life: life.stream });
    const ends = [stdout.childEnd, stderr.childEnd, life.childEnd, stdout.readEnd ?? 'ignore', stderr.readEnd] as const;
    // In a session of its own: no terminal's signal reaches it, and it is the group that ends it with its Envoy.
    const child = spawn('/bin/sh', ['-c', wrapper, 'envoy-wrapper', folder, ...command], {
      stdio: ['ignore', ...ends, living ?? 'ignore'],
      detached: true,
    });
    child.once('error', (error) => held.#failed(error));
    child.unref();
    if (child.pid !== undefined) {
      held.#wrapper = { pid: child.pid, startTime: startTimeOf(child.pid) ?? '' };
      void held.#awaitEnvoy();
    }
    return held;
  }

  /** Follows one that another agent has started. Undefined: it never came to be, or nobody can tell its end. */
  static adopt(folder: string): HeldEnvoy | undefined {
    const envoy = identityIn(join(folder, 'envoy'));
    const shell = identityIn(join(folder, 'wrapper'));
    if (envoy === undefined || shell === undefined) return undefined;
    const open = (fd: number) => (isAlive(shell) ? openPipeOf(shell.pid, fd) : undefined);
    const life = open(lifeFd);
    const [stdout, stderr] = [open(stdoutReaderFd), open(stderrReaderFd)];
    const held = new HeldEnvoy(folder, {
      stdout: stdout ?? null,
      stderr: stderr ?? null,
      life: life ?? closedStream(),
    });
    held.#wrapper = shell;
    held.#envoy = envoy;
    return held;
  }

  /** Envoy's; as long as that is not known, the shell's. */
  get pid(): number | undefined {
    return this.#envoy?.pid ?? this.#wrapper?.pid;
  }

  /** @returns whether there was anybody to send it to */
  kill(signal: NodeJS.Signals = 'SIGTERM'): boolean {
    if (this.#over) return false;
    if (this.#envoy !== undefined) return send(this.#envoy, signal);
    // The shell has not said yet whom it has started: only an end can be had, that of both.
    if (signal !== 'SIGKILL' || this.#wrapper === undefined) return false;
    this.#killedEarly = true;
    return sendToGroup(this.#wrapper, signal);
  }

  /** Another agent goes on with it, and reads what it writes. */
  letGo(): void {
    this.#over = true;
    for (const stream of [this.stdout, this.stderr, this.#life]) stream?.destroy();
  }

  /** Its end has been told: nobody needs to learn of it once more. */
  forget(): void {
    removeQuietly(this.folder);
  }

  async #awaitEnvoy(): Promise<void> {
    const deadline = performance.now() + startLimitMs;
    while (!this.#over) {
      // First of all: on a busy machine the shell may be quicker than whoever is going to listen.
      await sleep(pollMs);
      this.#envoy = identityIn(join(this.folder, 'envoy'));
      if (this.#envoy !== undefined) {
        this.emit('spawn');
        return;
      }
      if (performance.now() > deadline) {
        this.kill('SIGKILL');
        this.#failed(new Error(`process did not start within ${startLimitMs} ms`));
        return;
      }
    }
  }

  #failed(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#life.destroy();
    this.emit('error', error);
  }

  /** The shell is gone, and with it Envoy: of its own accord, or because the kernel ties it to the shell. */
  #ended(): void {
    if (this.#over) return;
    this.#envoy ??= identityIn(join(this.folder, 'envoy'));
    if (this.#envoy === undefined && !this.#killedEarly) {
      this.#failed(new Error('shell that starts Envoy exited before Envoy started'));
      return;
    }
    void this.#gone();
  }

  async #gone(): Promise<void> {
    // Without its shell an Envoy ends, which may take it some seconds: nobody may take its place before that.
    while (this.#envoy !== undefined && send(this.#envoy, 'SIGKILL')) await sleep(lastWaitMs);
    this.#over = true;
    const code = exitCodeIn(join(this.folder, 'exit'));
    if (code === undefined) this.emit('exit', null, 'SIGKILL');
    else this.emit('exit', ...asNodeSays(code));
  }
}

/**
 * Makes sure that a shell which had not begun never starts an Envoy: it does not without its folder.
 *
 * @returns false where it has begun
 */
export function withdrawStart(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return isSystemError(error, 'ENOENT');
  }
}

/**
 * Ends what was started in a folder, whatever it is, and removes that. The shell never before its Envoy, which may not be known yet: an Envoy
 * that loses its shell gets SIGTERM, and ends the parent that serves (spec/envoy-hot-restart.md facts 3 and 8).
 *
 * @returns the processes that had to be killed
 */
export function endHeld(folder: string): number[] {
  const found = ['envoy', 'wrapper'].flatMap((name) => identityIn(join(folder, name)) ?? []);
  const living = found.filter(isAlive);
  for (const process of living) {
    if (!sendToGroup(process, 'SIGKILL')) send(process, 'SIGKILL');
  }
  removeQuietly(folder);
  return living.map(({ pid }) => pid);
}

/** The process of an Envoy; undefined: its shell has not said it yet. */
export const envoyIn = (folder: string): ProcessIdentity | undefined => identityIn(join(folder, 'envoy'));

export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => startTimeOf(pid) === startTime;

/** A whole line only: one that is being written is none. */
function identityIn(file: string): ProcessIdentity | undefined {
  const [, pid, startTime] = /^(\d{1,9}) (\d{1,20})\n$/.exec(textOf(file)) ?? [];
  return pid === undefined || startTime === undefined || Number(pid) < 2 ? undefined : { pid: Number(pid), startTime };
}

function exitCodeIn(file: string): number | undefined {
  const [, code] = /^(\d{1,3})\n$/.exec(textOf(file)) ?? [];
  return code === undefined ? undefined : Number(code);
}

/** A shell tells of a signal as of a code above 128. */
function asNodeSays(code: number): [number | null, NodeJS.Signals | null] {
  const signal = Object.entries(osConstants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? [code, null] : [null, signal as NodeJS.Signals];
}

function send(to: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(to) && quietly(() => process.kill(to.pid, signal));
}

function sendToGroup(to: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(to) && quietly(() => process.kill(-to.pid, signal));
}

function quietly(deed: () => boolean): boolean {
  try {
    return deed();
  } catch {
    return false;
  }
}

/** The same pipe, opened once more: it has no name any more. Undefined: there is none. */
function openPipeOf(pid: number, fd: number): Readable | undefined {
  const path = `/proc/${pid}/fd/${fd}`;
  try {
    if (readlinkSync(path) === '/dev/null') return undefined;
    return new Socket({
      fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK),
      readable: true,
      writable: false,
    });
  } catch {
    return undefined;
  }
}

function closedStream(): Readable {
  const nobody = new Socket();
  nobody.destroy();
  return nobody;
}
