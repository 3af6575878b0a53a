/**
 * An Envoy that outlives its agent. Its parent is a shell that only waits for it, because the kernel ends Envoy with the thread that spawned it
 * (docs/hot-restart-reference.md, fact 8). The next agent finds these files in the folder of the Envoy:
 * - `wrapper` and `envoy`: PID and start time of the shell and of Envoy;
 * - `exit`: the exit code in the shell's form (128 + signal).
 *
 * The shell holds the write end of a pipe (`life`), whose closing reports Envoy's exit to any reader. It also holds the read ends of Envoy's outputs.
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
import type { DetachedChannels } from './output/output-channels.ts';
import { readTextOrEmpty, removeQuietly } from './quiet-files.ts';

/** The start time identifies a process even if its PID is reused. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** `exit`: exit code or signal; both null if the exit was not observed. */
export interface DetachedEnvoyEvents {
  spawn: [];
  error: [Error];
  exit: [code: number | null, signal: NodeJS.Signals | null];
}

const lifeFd = 3;
const stdoutReaderFd = 4;
const stderrReaderFd = 5;
/** Open while the shell lives: {@link file://./record-owner.ts}. */
const livingFd = 6;

/**
 * Start time 0 means that Envoy exited before the shell could read it. The signals have handlers because Envoy would inherit ignored signals. If the folder
 * was removed, another agent has withdrawn the start, and the shell does not start Envoy.
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

/** Timeout until Envoy has a PID, which takes one fork. */
const startLimitMs = 10_000;
const pollMs = 2;
const exitPollMs = 20;

/** Replaces a ChildProcess in the process table, whether Envoy is a child of this agent or not. */
export class DetachedEnvoy extends EventEmitter<DetachedEnvoyEvents> {
  readonly folder: string;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  readonly #livenessPipe: Readable;
  #envoy: ProcessIdentity | undefined;
  #wrapper: ProcessIdentity | undefined;
  #wasKilledEarly = false;
  #hasEnded = false;

  private constructor(
    folder: string,
    { stdout, stderr, life: livenessPipe }: { stdout: Readable | null; stderr: Readable | null; life: Readable },
  ) {
    super();
    this.folder = folder;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#livenessPipe = livenessPipe;
    livenessPipe.on('data', () => {});
    livenessPipe.on('error', () => livenessPipe.destroy());
    livenessPipe.once('close', () => this.#onShellExit());
  }

  /** @param livingFileDescriptor open file that marks this container as alive to agents of other containers */
  static start(
    folder: string,
    command: readonly string[],
    channels: DetachedChannels,
    livingFileDescriptor?: number,
  ): DetachedEnvoy {
    mkdirSync(folder, { mode: 0o700 });
    const { stdout, stderr, life } = channels;
    const detachedEnvoy = new DetachedEnvoy(folder, {
      stdout: stdout.stream ?? null,
      stderr: stderr.stream,
      life: life.stream,
    });
    const stdioEnds = [
      stdout.childEnd,
      stderr.childEnd,
      life.childEnd,
      stdout.readEnd ?? 'ignore',
      stderr.readEnd,
    ] as const;
    // In its own session: no signal of a terminal reaches it, and killing the process group ends both the shell and Envoy.
    const child = spawn('/bin/sh', ['-c', wrapper, 'envoy-wrapper', folder, ...command], {
      stdio: ['ignore', ...stdioEnds, livingFileDescriptor ?? 'ignore'],
      detached: true,
    });
    child.once('error', (error) => detachedEnvoy.#fail(error));
    child.unref();
    if (child.pid !== undefined) {
      detachedEnvoy.#wrapper = { pid: child.pid, startTime: startTimeOf(child.pid) ?? '' };
      void detachedEnvoy.#awaitEnvoy();
    }
    return detachedEnvoy;
  }

  /** Adopts the Envoy of another agent. Returns `undefined` if it never started, or if its exit cannot be observed. */
  static adopt(folder: string): DetachedEnvoy | undefined {
    const envoy = readIdentity(join(folder, 'envoy'));
    const shell = readIdentity(join(folder, 'wrapper'));
    if (envoy === undefined || shell === undefined) return undefined;
    const openPipe = (fd: number) => (isAlive(shell) ? openPipeOf(shell.pid, fd) : undefined);
    const livenessPipe = openPipe(lifeFd);
    const [stdout, stderr] = [openPipe(stdoutReaderFd), openPipe(stderrReaderFd)];
    const detachedEnvoy = new DetachedEnvoy(folder, {
      stdout: stdout ?? null,
      stderr: stderr ?? null,
      life: livenessPipe ?? closedStream(),
    });
    detachedEnvoy.#wrapper = shell;
    detachedEnvoy.#envoy = envoy;
    return detachedEnvoy;
  }

  get pid(): number | undefined {
    return this.#envoy?.pid ?? this.#wrapper?.pid;
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): boolean {
    if (this.#hasEnded) return false;
    if (this.#envoy !== undefined) return send(this.#envoy, signal);
    // Before Envoy's PID is known, only SIGKILL works, for the process group.
    if (signal !== 'SIGKILL' || this.#wrapper === undefined) return false;
    this.#wasKilledEarly = true;
    return sendToGroup(this.#wrapper, signal);
  }

  release(): void {
    this.#hasEnded = true;
    for (const stream of [this.stdout, this.stderr, this.#livenessPipe]) stream?.destroy();
  }

  /** Must be called after the exit was handled. */
  removeFolder(): void {
    removeQuietly(this.folder);
  }

  async #awaitEnvoy(): Promise<void> {
    const deadline = performance.now() + startLimitMs;
    while (!this.#hasEnded) {
      // Poll only after a delay: on a busy host the shell could start Envoy before the caller adds listeners.
      await sleep(pollMs);
      this.#envoy = readIdentity(join(this.folder, 'envoy'));
      if (this.#envoy !== undefined) {
        this.emit('spawn');
        return;
      }
      if (performance.now() > deadline) {
        this.kill('SIGKILL');
        this.#fail(new Error(`process did not start within ${startLimitMs} ms`));
        return;
      }
    }
  }

  #fail(error: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#livenessPipe.destroy();
    this.emit('error', error);
  }

  /** Envoy has exited too, or the kernel is ending it. */
  #onShellExit(): void {
    if (this.#hasEnded) return;
    this.#envoy ??= readIdentity(join(this.folder, 'envoy'));
    if (this.#envoy === undefined && !this.#wasKilledEarly) {
      this.#fail(new Error('shell that starts Envoy exited before Envoy started'));
      return;
    }
    void this.#reportExit();
  }

  async #reportExit(): Promise<void> {
    // An Envoy that lost its shell may take some seconds to exit. Its successor must not start before the exit.
    while (this.#envoy !== undefined && send(this.#envoy, 'SIGKILL')) await sleep(exitPollMs);
    this.#hasEnded = true;
    const code = exitCodeIn(join(this.folder, 'exit'));
    if (code === undefined) this.emit('exit', null, 'SIGKILL');
    else this.emit('exit', ...nodeExitOf(code));
  }
}

/** @returns false if the shell has already used the folder */
export function withdrawStart(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return isSystemError(error, 'ENOENT');
  }
}

/**
 * Never kills the shell before its Envoy: an Envoy that loses its shell gets SIGTERM, and then ends the serving parent
 * (docs/hot-restart-reference.md, facts 3 and 8).
 */
export function killDetached(folder: string): number[] {
  const recordedProcesses = ['envoy', 'wrapper'].flatMap((name) => readIdentity(join(folder, name)) ?? []);
  const livingProcesses = recordedProcesses.filter(isAlive);
  for (const process of livingProcesses) {
    if (!sendToGroup(process, 'SIGKILL')) send(process, 'SIGKILL');
  }
  removeQuietly(folder);
  return livingProcesses.map(({ pid }) => pid);
}

/** `undefined` until the shell has recorded it. */
export const readEnvoyIdentity = (folder: string): ProcessIdentity | undefined => readIdentity(join(folder, 'envoy'));

export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => startTimeOf(pid) === startTime;

/** Ignores an incomplete line, which is still being written. */
function readIdentity(file: string): ProcessIdentity | undefined {
  const [, pid, startTime] = /^(\d{1,9}) (\d{1,20})\n$/.exec(readTextOrEmpty(file)) ?? [];
  return pid === undefined || startTime === undefined || Number(pid) < 2 ? undefined : { pid: Number(pid), startTime };
}

function exitCodeIn(file: string): number | undefined {
  const [, code] = /^(\d{1,3})\n$/.exec(readTextOrEmpty(file)) ?? [];
  return code === undefined ? undefined : Number(code);
}

/** A shell's exit code above 128 is 128 plus the number of a signal. */
function nodeExitOf(code: number): [number | null, NodeJS.Signals | null] {
  const signal = Object.entries(osConstants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? [code, null] : [null, signal as NodeJS.Signals];
}

function send(to: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(to) && trySignal(() => process.kill(to.pid, signal));
}

function sendToGroup(to: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(to) && trySignal(() => process.kill(-to.pid, signal));
}

function trySignal(call: () => boolean): boolean {
  try {
    return call();
  } catch {
    return false;
  }
}

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
  const closedSocket = new Socket();
  closedSocket.destroy();
  return closedSocket;
}
