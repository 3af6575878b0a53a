/** The process effect of an epoch: one Envoy, from its spawn to its exit. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnyActorRef, fromCallback } from 'xstate';
import type { StartOrder } from '../../../machines/agent/epoch.machine.ts';
import type { ProcessExited, ProcessFailed, ProcessSignal, ProcessSpawned } from '../../../machines/agent/protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { whyNotExecutable } from '../../runtime/executable.ts';
import type { LineSink } from '../../runtime/line-sink.ts';
import type { Logger } from '../../runtime/log.ts';
import { standardOutput } from '../../runtime/standard-streams.ts';
import { actorName } from '../../runtime/trace/known-actors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { AdminDirectory } from '../admin/admin-interfaces.ts';
import { type EnvoyFlags, envoyArguments } from './envoy-args.ts';
import type { BinaryPaths } from './envoy-binaries.ts';
import { EnvoyOutput } from './envoy-log.ts';
import { EnvoyLogRecords } from './envoy-log-records.ts';
import type { OutOfMemoryCounter } from './out-of-memory.ts';
import { type OutputChannels, openOutputChannels } from './output-channels.ts';
import { readLines, readWholeLines } from './output-lines.ts';
import type { ProcessTable } from './process-table.ts';
import type { ScratchParent } from './scratch-folder.ts';
import { watchTakeOver } from './take-over.ts';

export interface EnvoyProcessEnvironment {
  readonly binaries: BinaryPaths;
  readonly flags: EnvoyFlags;
  readonly log: Logger;
  /** Where goes what Envoy writes to its standard output: ours, unless a test says otherwise. */
  readonly accessLog?: Pick<LineSink, 'write' | 'relief'>;
  readonly table: ProcessTable;
  readonly admins: AdminDirectory;
  /** Envoy's own lines go into the trace; what users let it write, access logs, does not. */
  readonly recorder?: Pick<Recorder, 'record'>;
  /** From {@link parentDeathGuard}. */
  readonly guard: readonly string[];
  /** Of the control group that Envoys live in. */
  readonly outOfMemoryKills: OutOfMemoryCounter;
  /** Where the pipes to an Envoy have names for a moment. */
  readonly scratch: readonly ScratchParent[];
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
      process.kill('SIGKILL');
    };
  });
}

function runEnvoy(
  environment: EnvoyProcessEnvironment,
  run: StartOrder,
  { report, records }: { report: (event: ProcessReport) => void; records: EnvoyLogRecords },
): { kill(signal: NodeJS.Signals): void } {
  const { flags, log, accessLog = standardOutput, table, admins, guard, outOfMemoryKills } = environment;
  const channels = channelsFor(environment, run);
  if ('problem' in channels) {
    report({ type: 'process.failed', reason: channels.problem });
    return { kill: () => {} };
  }
  const { binary } = channels;
  const [file, ...args] = [...guard, binary, ...envoyArguments(flags, run)];
  const killsBefore = outOfMemoryKills();
  const child = startedBy(() =>
    // A group of its own: Ctrl-C at a terminal is for the agent, which then drains. Envoy's kernel tie to the thread that
    // spawned it holds all the same. Not execa: its time-outs, buffers and clean-up are what an Envoy must not have.
    spawn(file!, args, { stdio: ['ignore', channels.stdout.childEnd, channels.stderr.childEnd], detached: true }),
  );
  channels.release();
  if ('problem' in child) {
    report({ type: 'process.failed', reason: `${binary}: ${child.problem}` });
    return { kill: () => {} };
  }
  table.add(child, run);
  const startedAt = performance.now();
  const hadTakenOver = watchTakeOver({ admins }, run);
  const output = new EnvoyOutput(log, { run, onLine: (line) => records.take(line) });
  const outputEnds = Promise.all([
    readLines(channels.stderr.stream ?? child.stderr, (line) => output.line(line)),
    // Envoy's own log goes to stderr: here is only what users let it write, access logs. It goes out untouched.
    readWholeLines(channels.stdout.stream ?? child.stdout, (lines) => {
      accessLog.write(lines);
      return accessLog.relief(longestPauseMs);
    }),
  ]);

  let over = false;
  let killedByUs = false;
  child.once('spawn', () => report({ type: 'process.spawned', pid: child.pid ?? 0 }));
  child.once('error', (error) => {
    if (over || child.pid !== undefined) return;
    over = true;
    report({ type: 'process.failed', reason: `${binary}: ${messageOf(error)}` });
  });
  child.once('exit', async (code, signal) => {
    const livedMs = Math.round(performance.now() - startedAt);
    const [tookOver] = await Promise.all([
      killedByUs ? false : hadTakenOver(),
      // Its last words may still be in the pipe; a pipe that somebody else holds open must not keep us waiting.
      Promise.race([outputEnds, sleep(outputGraceMs, undefined, { ref: false })]),
    ]);
    over = true;
    records.end();
    const { refusedByParent } = output;
    // Who is killed says nothing (spec/agent.md §2.6 F12).
    const killed = signal === 'SIGKILL' && !killedByUs ? byWhom(killsBefore, outOfMemoryKills()) : undefined;
    const { lastWords, outOfMemory } = killed ?? { lastWords: output.lastWords(), outOfMemory: false };
    const takeOver = tookOver ? { tookOverWithinMs: livedMs } : {};
    report({ type: 'process.exited', code, signal, lastWords, refusedByParent, outOfMemory, ...takeOver });
  });
  return {
    kill: (signal) => {
      killedByUs ||= signal === 'SIGKILL';
      child.kill(signal);
    },
  };
}

/** What the kernel's counter says about a SIGKILL that this agent did not send. */
function byWhom(before: number | undefined, now: number | undefined): { lastWords: string; outOfMemory: boolean } {
  if (before === undefined || now === undefined) {
    return { lastWords: 'not by this agent; out of memory?', outOfMemory: false };
  }
  const outOfMemory = now > before;
  const lastWords = outOfMemory
    ? `out of memory: the kernel's oom_kill counter went from ${before} to ${now}`
    : 'killed, not by this agent; the kernel counts no out-of-memory kill';
  return { lastWords, outOfMemory };
}

/** Most of what can go wrong is told by an event; arguments that are too long for the system are thrown. */
function startedBy(start: () => ChildProcess): ChildProcess | { problem: string } {
  try {
    return start();
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** The outputs of an Envoy that may be started now, or why it cannot be. */
function channelsFor(
  { binaries, scratch }: EnvoyProcessEnvironment,
  run: StartOrder,
): (OutputChannels & { binary: string }) | { problem: string } {
  try {
    const binary = binaries.pathOf(run.binary);
    const why = whyNotExecutable(binary);
    if (why !== undefined) return { problem: `Envoy cannot be started: ${binary} ${why}` };
    return { ...openOutputChannels(scratch), binary };
  } catch (error) {
    return { problem: `Envoy cannot be started: ${messageOf(error)}` };
  }
}
