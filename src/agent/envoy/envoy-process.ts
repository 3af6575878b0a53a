import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnyActorRef, fromCallback } from 'xstate';
import type { StartOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { ProcessExited, ProcessFailed, ProcessSignal, ProcessSpawned } from '../../../machines/agent/protocol.ts';
import { errorReasonOf, messageOf } from '../../runtime/errors.ts';
import { notExecutableReason } from '../../runtime/files/executable.ts';
import { hostMs } from '../../runtime/host-clock.ts';
import type { LineSink } from '../../runtime/output/line-sink.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { actorName } from '../../runtime/trace/known-actors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { AdminConnector } from '../admin/admin-client.ts';
import { DetachedEnvoy } from './detached-envoy.ts';
import { type EnvoyFlags, envoyArguments } from './envoy-args.ts';
import type { BinaryPaths } from './envoy-binaries.ts';
import type { OutOfMemoryCounter } from './out-of-memory.ts';
import { EnvoyOutput } from './output/envoy-log.ts';
import { EnvoyLogRecords } from './output/envoy-log-records.ts';
import { type OutputChannels, openDetachedChannels, openOutputChannels } from './output/output-channels.ts';
import { readLineChunks, readLines } from './output/output-lines.ts';
import type { ProcessTable } from './process-table.ts';
import type { AgentRecord } from './record/agent-record.ts';
import type { ScratchParent } from './scratch-folder.ts';
import { watchTakeOver } from './take-over.ts';

export interface EnvoyProcessEnvironment {
  readonly binaries: BinaryPaths;
  readonly flags: EnvoyFlags;
  readonly log: Logger;
  /** Receives Envoy's standard output (default: that of the agent). */
  readonly accessLog?: Pick<LineSink, 'write' | 'waitForSpace'>;
  readonly table: ProcessTable;
  readonly adminAt: AdminConnector;
  /** Records Envoy's log, but not access logs. */
  readonly recorder?: Pick<Recorder, 'record'>;
  /** Command prefix that ends Envoy together with its parent (parent-death.ts); empty if unavailable. */
  readonly guard: readonly string[];
  /** Counts OOM kills in the control group of the Envoys. */
  readonly outOfMemoryKills: OutOfMemoryCounter;
  /** Folders in which output pipes get a temporary name. */
  readonly scratch: readonly ScratchParent[];
  /** The record of Envoys that outlive this agent is absent without live restore. */
  readonly held?: Pick<AgentRecord, 'recordStart' | 'folderOf'> & Partial<Pick<AgentRecord, 'living'>>;
}

type ProcessReport = ProcessSpawned | ProcessExited | ProcessFailed;

/** Maximum wait of Envoy's access log for a slow reader. Blocks Envoy's flush thread, not requests. */
const maxPauseMs = 1_000;
const outputGraceMs = 200;

export function envoyProcess(environment: EnvoyProcessEnvironment) {
  return fromCallback<ProcessSignal, StartOrder>(({ input, sendBack, receive, self }) => {
    let isActive = true;
    const actor = actorName(self as AnyActorRef);
    const records = new EnvoyLogRecords((line) => {
      if (isActive) environment.recorder?.record({ kind: 'log', actor, ...line });
    });
    const report = (event: ProcessReport): void => {
      if (isActive) sendBack(event);
    };
    const process = runEnvoy(environment, input, { report, records });
    receive(({ signal }) => process.kill(signal));
    return () => {
      isActive = false;
      if (environment.table.isHandedOver) process.release();
      else process.kill('SIGKILL');
    };
  });
}

function runEnvoy(
  environment: EnvoyProcessEnvironment,
  run: StartOrder,
  { report, records }: { report: (event: ProcessReport) => void; records: EnvoyLogRecords },
): { kill(signal: NodeJS.Signals): void; release(): void } {
  const { log, accessLog = standardOutput, table, adminAt, outOfMemoryKills } = environment;
  const startedAtMs = run.adopted?.startedAtMs ?? hostMs();
  const initialKillCount = outOfMemoryKills();
  const startedProcess = run.adopted === undefined ? startEnvoy(environment, run) : adoptEnvoy(environment, run);
  if ('problem' in startedProcess) {
    report({ type: 'process.failed', reason: startedProcess.problem });
    return { kill: () => {}, release: () => {} };
  }
  const { child, binary } = startedProcess;
  table.add(child, run);
  const hadTakenOver = watchTakeOver({ adminAt, hadParent: run.adopted !== undefined }, run);
  const output = new EnvoyOutput(log, { run, onLine: (line) => records.record(line) });
  const outputEnds = Promise.all([
    readLines(startedProcess.stderr, (line) => output.line(line)),
    // Envoy logs to stderr; its stdout contains only the access logs that users configured.
    readLineChunks(startedProcess.stdout, (lines) => {
      accessLog.write(lines);
      return accessLog.waitForSpace(maxPauseMs);
    }),
  ]);

  let hasEnded = false;
  let killedByAgent = false;
  let isReleased = false;
  child.once('spawn', () => report({ type: 'process.spawned', pid: child.pid ?? 0, startedAtMs }));
  child.once('error', (error) => {
    if (hasEnded || (child.pid !== undefined && !(child instanceof DetachedEnvoy))) return;
    hasEnded = true;
    if (child instanceof DetachedEnvoy) child.removeFolder();
    report({ type: 'process.failed', reason: `${binary}: ${messageOf(error)}` });
  });
  child.once('exit', async (code: number | null, signal: NodeJS.Signals | null) => {
    const lifetimeMs = hostMs() - startedAtMs;
    const [hasTakenOver] = await Promise.all([
      killedByAgent ? false : hadTakenOver(),
      // Another process may hold the pipe open, so the wait is limited.
      Promise.race([outputEnds, sleep(outputGraceMs, undefined, { ref: false })]),
      // An agent that was suspended receives the exit before its expired timers: let the timers run first.
      sleep(1),
    ]);
    hasEnded = true;
    records.end();
    const { refusedByParent } = output;
    const killCause =
      signal === 'SIGKILL' && !killedByAgent ? causeOfKill(initialKillCount, outOfMemoryKills()) : undefined;
    const { lastOutput, outOfMemory } = killCause ?? { lastOutput: output.exitReason(), outOfMemory: false };
    const takeoverFields = hasTakenOver ? { tookOverWithinMs: lifetimeMs } : {};
    report({ type: 'process.exited', code, signal, lastOutput, refusedByParent, outOfMemory, ...takeoverFields });
    // The folder would report an already handled exit to the next agent.
    if (child instanceof DetachedEnvoy && !isReleased) child.removeFolder();
  });
  return {
    kill: (signal) => {
      killedByAgent ||= signal === 'SIGKILL';
      child.kill(signal);
    },
    release: () => {
      isReleased = true;
      if (child instanceof DetachedEnvoy) child.release();
    },
  };
}

/** An output is `null` if this agent does not read it. */
interface StartedEnvoy {
  readonly child: ChildProcess | DetachedEnvoy;
  readonly binary: string;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
}

function startEnvoy(environment: EnvoyProcessEnvironment, run: StartOrder): StartedEnvoy | { problem: string } {
  const { flags, guard, held } = environment;
  const binary = resolveBinary(environment, run);
  if ('problem' in binary) return binary;
  const command = [...guard, binary.path, ...envoyArguments(flags, run)];
  const startedProcess = tryToStart(
    () =>
      (held && startDetached(held, environment, run, command)) ??
      startAsChild(command, openOutputChannels(environment.scratch)),
  );
  if (!('problem' in startedProcess)) return { ...startedProcess, binary: binary.path };
  return { problem: `cannot start Envoy: ${startedProcess.problem}` };
}

/** `undefined` if the next agent could not open the pipes. */
function startDetached(
  heldProcesses: NonNullable<EnvoyProcessEnvironment['held']>,
  { scratch }: EnvoyProcessEnvironment,
  run: StartOrder,
  command: readonly string[],
): Omit<StartedEnvoy, 'binary'> | undefined {
  const channels = openDetachedChannels(scratch);
  if (channels === undefined) return undefined;
  try {
    const child = DetachedEnvoy.start(heldProcesses.recordStart(run), command, channels, heldProcesses.living);
    return { child, stdout: child.stdout, stderr: child.stderr };
  } finally {
    channels.release();
  }
}

function startAsChild([file, ...args]: readonly string[], channels: OutputChannels): Omit<StartedEnvoy, 'binary'> {
  try {
    // In its own process group, so that Ctrl-C at a terminal reaches only the agent, which then drains. Not execa, whose timeouts, buffers and
    // clean-up would affect Envoy.
    const stdio = ['ignore', channels.stdout.childEnd, channels.stderr.childEnd] as const;
    const child = spawn(file!, args, { stdio: [...stdio], detached: true });
    const { stdout, stderr } = channels;
    return { child, stdout: stdout.stream ?? child.stdout, stderr: stderr.stream ?? child.stderr };
  } finally {
    channels.release();
  }
}

function adoptEnvoy({ held }: EnvoyProcessEnvironment, run: StartOrder): StartedEnvoy | { problem: string } {
  const folder = held?.folderOf(run);
  const child = folder === undefined ? undefined : DetachedEnvoy.adopt(folder);
  if (child === undefined) return { problem: 'Envoy process of the previous agent not found' };
  queueMicrotask(() => child.emit('spawn'));
  return { child, binary: run.binary, stdout: child.stdout, stderr: child.stderr };
}

/** The OOM counter of the kernel shows the cause of a SIGKILL that this agent did not send. */
function causeOfKill(
  initialKillCount: number | undefined,
  currentKillCount: number | undefined,
): { lastOutput: string; outOfMemory: boolean } {
  if (initialKillCount === undefined || currentKillCount === undefined) {
    return { lastOutput: 'killed by another process or the kernel, possibly out of memory', outOfMemory: false };
  }
  const outOfMemory = currentKillCount > initialKillCount;
  const lastOutput = outOfMemory
    ? `killed by the kernel, out of memory (oom_kill ${initialKillCount} → ${currentKillCount})`
    : 'killed by another process (the kernel reports no out-of-memory kill)';
  return { lastOutput, outOfMemory };
}

/** `spawn` reports most errors with an event, but throws if the arguments are too long. */
function tryToStart<A>(start: () => A): A | { problem: string } {
  try {
    return start();
  } catch (error) {
    return { problem: errorReasonOf(error) };
  }
}

function resolveBinary({ binaries }: EnvoyProcessEnvironment, run: StartOrder): { path: string } | { problem: string } {
  try {
    const path = binaries.pathOf(run.binary);
    const reason = notExecutableReason(path);
    return reason === undefined ? { path } : { problem: `cannot start Envoy: ${path} ${reason}` };
  } catch (error) {
    return { problem: `cannot start Envoy: ${errorReasonOf(error)}` };
  }
}
