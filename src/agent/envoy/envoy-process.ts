/** The process effect of an epoch: one Envoy, from its spawn to its exit. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnyActorRef, fromCallback } from 'xstate';
import type { StartOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { ProcessExited, ProcessFailed, ProcessSignal, ProcessSpawned } from '../../../machines/agent/protocol.ts';
import { messageOf, reasonIn } from '../../runtime/errors.ts';
import { whyNotExecutable } from '../../runtime/files/executable.ts';
import { hostMs } from '../../runtime/host-clock.ts';
import type { LineSink } from '../../runtime/output/line-sink.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { actorName } from '../../runtime/trace/known-actors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { AdminConnector } from '../admin/admin-client.ts';
import { type EnvoyFlags, envoyArguments } from './envoy-args.ts';
import type { BinaryPaths } from './envoy-binaries.ts';
import { HeldEnvoy } from './held-envoy.ts';
import type { OutOfMemoryCounter } from './out-of-memory.ts';
import { EnvoyOutput } from './output/envoy-log.ts';
import { EnvoyLogRecords } from './output/envoy-log-records.ts';
import { type OutputChannels, openHeldChannels, openOutputChannels } from './output/output-channels.ts';
import { readLines, readWholeLines } from './output/output-lines.ts';
import type { ProcessTable } from './process-table.ts';
import type { AgentRecord } from './record/agent-record.ts';
import type { ScratchParent } from './scratch-folder.ts';
import { watchTakeOver } from './take-over.ts';

export interface EnvoyProcessEnvironment {
  readonly binaries: BinaryPaths;
  readonly flags: EnvoyFlags;
  readonly log: Logger;
  /** Where Envoy's standard output goes: to ours, unless a test says otherwise. */
  readonly accessLog?: Pick<LineSink, 'write' | 'relief'>;
  readonly table: ProcessTable;
  readonly adminAt: AdminConnector;
  /** Envoy's own lines go into the trace; what users let it write, access logs, does not. */
  readonly recorder?: Pick<Recorder, 'record'>;
  /** The program and arguments that end an Envoy with its parent (parent-death.ts); empty: none. */
  readonly guard: readonly string[];
  /** Counts processes that the kernel killed for want of memory in the control group that Envoys live in. */
  readonly outOfMemoryKills: OutOfMemoryCounter;
  /** Where the pipes to an Envoy have names for a moment. */
  readonly scratch: readonly ScratchParent[];
  /** Where Envoys that outlive this agent are known from; absent: none does. */
  readonly held?: Pick<AgentRecord, 'processStarts' | 'folderOf'> & Partial<Pick<AgentRecord, 'living'>>;
}

type ProcessReport = ProcessSpawned | ProcessExited | ProcessFailed;

/** How long an Envoy's access log waits for a reader that is slow: in its flushing thread, where no request waits. */
const longestPauseMs = 1_000;
/** How long the output of a process that has exited may still be read. */
const outputGraceMs = 200;

export function envoyProcess(environment: EnvoyProcessEnvironment) {
  return fromCallback<ProcessSignal, StartOrder>(({ input, sendBack, receive, self }) => {
    let listening = true;
    const actor = actorName(self as AnyActorRef);
    const records = new EnvoyLogRecords((line) => {
      if (listening) environment.recorder?.record({ kind: 'log', actor, ...line });
    });
    const report = (event: ProcessReport): void => {
      if (listening) sendBack(event);
    };
    const process = runEnvoy(environment, input, { report, records });
    receive(({ signal }) => process.kill(signal));
    return () => {
      listening = false;
      if (environment.table.letsGo) process.letGo();
      else process.kill('SIGKILL');
    };
  });
}

function runEnvoy(
  environment: EnvoyProcessEnvironment,
  run: StartOrder,
  { report, records }: { report: (event: ProcessReport) => void; records: EnvoyLogRecords },
): { kill(signal: NodeJS.Signals): void; letGo(): void } {
  const { log, accessLog = standardOutput, table, adminAt, outOfMemoryKills } = environment;
  const startedAtMs = run.adopted?.startedAtMs ?? hostMs();
  const killsBefore = outOfMemoryKills();
  const started = run.adopted === undefined ? startEnvoy(environment, run) : adoptEnvoy(environment, run);
  if ('problem' in started) {
    report({ type: 'process.failed', reason: started.problem });
    return { kill: () => {}, letGo: () => {} };
  }
  const { child, binary } = started;
  table.add(child, run);
  const hadTakenOver = watchTakeOver({ adminAt, hadParent: run.adopted !== undefined }, run);
  const output = new EnvoyOutput(log, { run, onLine: (line) => records.take(line) });
  const outputEnds = Promise.all([
    readLines(started.stderr, (line) => output.line(line)),
    // Envoy's own log goes to stderr: here is only what users let it write, access logs. It goes out untouched.
    readWholeLines(started.stdout, (lines) => {
      accessLog.write(lines);
      return accessLog.relief(longestPauseMs);
    }),
  ]);

  let over = false;
  let killedByUs = false;
  let isAnothers = false;
  child.once('spawn', () => report({ type: 'process.spawned', pid: child.pid ?? 0, startedAtMs }));
  child.once('error', (error) => {
    if (over || (child.pid !== undefined && !(child instanceof HeldEnvoy))) return;
    over = true;
    if (child instanceof HeldEnvoy) child.forget();
    report({ type: 'process.failed', reason: `${binary}: ${messageOf(error)}` });
  });
  child.once('exit', async (code: number | null, signal: NodeJS.Signals | null) => {
    const livedMs = hostMs() - startedAtMs;
    const [tookOver] = await Promise.all([
      killedByUs ? false : hadTakenOver(),
      // Its last words may still be in the pipe; a pipe that somebody else holds open must not keep us waiting.
      Promise.race([outputEnds, sleep(outputGraceMs, undefined, { ref: false })]),
      // An agent that has slept hears of the exit before its timers that were due first: those have their turn.
      sleep(1),
    ]);
    over = true;
    records.end();
    const { refusedByParent } = output;
    // Who is killed says nothing (spec/agent.md §2.6 F12).
    const killed = signal === 'SIGKILL' && !killedByUs ? byWhom(killsBefore, outOfMemoryKills()) : undefined;
    const { lastWords, outOfMemory } = killed ?? { lastWords: output.lastWords(), outOfMemory: false };
    const takeOver = tookOver ? { tookOverWithinMs: livedMs } : {};
    report({ type: 'process.exited', code, signal, lastWords, refusedByParent, outOfMemory, ...takeOver });
    // Its folder is how the next agent learns of the end that this one has seen and nobody here was told of.
    if (child instanceof HeldEnvoy && !isAnothers) child.forget();
  });
  return {
    kill: (signal) => {
      killedByUs ||= signal === 'SIGKILL';
      child.kill(signal);
    },
    letGo: () => {
      isAnothers = true;
      if (child instanceof HeldEnvoy) child.letGo();
    },
  };
}

/** A process and what it writes; null: that is not ours to read. */
interface StartedEnvoy {
  readonly child: ChildProcess | HeldEnvoy;
  readonly binary: string;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
}

function startEnvoy(environment: EnvoyProcessEnvironment, run: StartOrder): StartedEnvoy | { problem: string } {
  const { flags, guard, held } = environment;
  const binary = binaryFor(environment, run);
  if ('problem' in binary) return binary;
  const command = [...guard, binary.path, ...envoyArguments(flags, run)];
  const started = startedBy(
    () =>
      (held && startHeld(held, environment, run, command)) ??
      startAsChild(command, openOutputChannels(environment.scratch)),
  );
  if (!('problem' in started)) return { ...started, binary: binary.path };
  return { problem: `cannot start Envoy: ${started.problem}` };
}

/** Its parent is a shell, which outlives this agent. Undefined: there are no pipes that the next agent could open. */
function startHeld(
  held: NonNullable<EnvoyProcessEnvironment['held']>,
  { scratch }: EnvoyProcessEnvironment,
  run: StartOrder,
  command: readonly string[],
): Omit<StartedEnvoy, 'binary'> | undefined {
  const channels = openHeldChannels(scratch);
  if (channels === undefined) return undefined;
  try {
    const child = HeldEnvoy.start(held.processStarts(run), command, channels, held.living);
    return { child, stdout: child.stdout, stderr: child.stderr };
  } finally {
    channels.release();
  }
}

function startAsChild([file, ...args]: readonly string[], channels: OutputChannels): Omit<StartedEnvoy, 'binary'> {
  try {
    // A group of its own: Ctrl-C at a terminal is for the agent, which then drains. Envoy's kernel tie to the thread that
    // spawned it holds all the same. Not execa: its time-outs, buffers and clean-up are what an Envoy must not have.
    const stdio = ['ignore', channels.stdout.childEnd, channels.stderr.childEnd] as const;
    const child = spawn(file!, args, { stdio: [...stdio], detached: true });
    const { stdout, stderr } = channels;
    return { child, stdout: stdout.stream ?? child.stdout, stderr: stderr.stream ?? child.stderr };
  } finally {
    channels.release();
  }
}

/** Goes on with an Envoy that an agent before this one has started. */
function adoptEnvoy({ held }: EnvoyProcessEnvironment, run: StartOrder): StartedEnvoy | { problem: string } {
  const folder = held?.folderOf(run);
  const child = folder === undefined ? undefined : HeldEnvoy.adopt(folder);
  if (child === undefined) return { problem: 'Envoy process of the previous agent not found' };
  queueMicrotask(() => child.emit('spawn'));
  return { child, binary: run.binary, stdout: child.stdout, stderr: child.stderr };
}

/** What the kernel's counter says about a SIGKILL that this agent did not send. */
function byWhom(before: number | undefined, now: number | undefined): { lastWords: string; outOfMemory: boolean } {
  if (before === undefined || now === undefined) {
    return { lastWords: 'killed by another process or the kernel, possibly out of memory', outOfMemory: false };
  }
  const outOfMemory = now > before;
  const lastWords = outOfMemory
    ? `killed by the kernel, out of memory (oom_kill ${before} → ${now})`
    : 'killed by another process (the kernel reports no out-of-memory kill)';
  return { lastWords, outOfMemory };
}

/** Most of what can go wrong is told by an event; arguments that are too long for the system are thrown. */
function startedBy<A>(start: () => A): A | { problem: string } {
  try {
    return start();
  } catch (error) {
    return { problem: reasonIn(error) };
  }
}

/** What is to be started, or why it cannot be. */
function binaryFor({ binaries }: EnvoyProcessEnvironment, run: StartOrder): { path: string } | { problem: string } {
  try {
    const path = binaries.pathOf(run.binary);
    const why = whyNotExecutable(path);
    return why === undefined ? { path } : { problem: `cannot start Envoy: ${path} ${why}` };
  } catch (error) {
    return { problem: `cannot start Envoy: ${reasonIn(error)}` };
  }
}
