/** Runs one schedule, from start to end, under all invariants. */
import { join } from 'node:path';
import { TraceChecker } from '../../src/debugger/check/check.ts';
import { formatDeviation } from '../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import type { InvariantViolation } from '../../src/debugger/explore/world.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { createRecorder, type Recorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceSink } from '../../src/runtime/trace/trace.ts';
import type { ScriptedAgent } from '../../src/simulation/agent/exploration-effects.ts';
import { invariants as allInvariants } from '../../src/simulation/agent/invariants/all.ts';
import { givingUpPasses } from '../../src/simulation/agent/invariants/converging.ts';
import { agentExitsForReason } from '../../src/simulation/agent/invariants/exits.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import {
  orphanIsReplaced,
  replacedFinishesRequests,
  servingIsKept,
} from '../../src/simulation/agent/invariants/keeping.ts';
import { takeStep } from './random-happening.ts';
import { type Schedule, type SinkFault, settingsKinds, type WatchStep } from './random-schedule.ts';
import { RandomSinks, type SinkParts } from './random-sinks.ts';
import { RandomWorld } from './random-world.ts';

export interface RandomRunOptions {
  readonly agent: ScriptedAgent;
  /** Defaults to all invariants. */
  readonly invariants?: readonly Invariant[];
  /** Whether the run is checked against the sequence diagrams. */
  readonly checksDiagrams?: boolean;
  /** Destination of the run's trace. */
  readonly sink?: TraceSink;
  /** Whether the agent has its log and trace, with their scheduled faults. */
  readonly sinks?: SinkParts;
}

export interface RandomRun {
  readonly violations: readonly InvariantViolation[];
  /** Milliseconds of virtual time. */
  readonly virtualMs: number;
  /** Envoys that were started. */
  readonly spawnCount: number;
  readonly exitCode: number | undefined;
  /** Numbers of lines and records, and of lost ones, if the run has sinks. */
  readonly sinks?: RandomSinks['figures'];
}

/** A random run becomes idle after every fault; a run of the explorer might not. */
const finalInvariants: readonly Invariant[] = [...allInvariants, givingUpPasses];
/** The violation of a run that deviates from the diagrams. */
const conformanceInvariant = 'the trace conforms to the sequence diagrams';
/** More than the longest path to idle: ten retries, each with a start that is not live in time. */
const maxEventsUntilIdle = 5_000;
/** Maximum time that the agent waits for exits, plus the response time of effects. */
const reapMs = 11_000;

export function run(schedule: Schedule, options: RandomRunOptions): RandomRun {
  let world: RandomWorld | undefined;
  const now = (): number => world?.clock.now() ?? 0;
  const sinks = options.sinks === undefined ? undefined : new RandomSinks(now, options.sinks);
  const recorder = recorderFor(options, now, sinks);
  const deviations = options.checksDiagrams === true ? watchConformity(recorder) : undefined;
  world = new RandomWorld(options.agent, schedule, {
    invariants: applicableInvariants(options.invariants ?? finalInvariants, schedule),
    ...(recorder !== undefined && { inspect: recorder.inspect }),
    ...(sinks !== undefined && { onTurn: () => sinks.runTimers() }),
  });
  for (const [i, step] of schedule.steps.entries()) {
    if (world.isOver) break;
    if (sinks !== undefined)
      for (const fault of faultsBefore(i, schedule.sinkFaults, schedule)) sinks.beginFault(fault);
    beginWatchFaults(i, schedule, world);
    takeStep(step, world);
  }
  const { length } = schedule.steps;
  if (sinks !== undefined)
    for (const fault of faultsBefore(length, schedule.sinkFaults, schedule)) sinks.beginFault(fault);
  beginWatchFaults(length, schedule, world);
  if (schedule.ending === 'in peace') endInPeace(world);
  endByStop(world);
  sinks?.endFaults();
  recorder?.close();
  return {
    violations: [...world.ledger.violations, ...(deviations?.() ?? []), ...(sinks?.violations ?? [])],
    virtualMs: world.clock.now(),
    spawnCount: world.host.spawnCount,
    exitCode: world.agent.output?.exitCode,
    ...(sinks !== undefined && { sinks: sinks.figures }),
  };
}

/** A shrunk schedule keeps all its faults, but at other steps. */
function faultsBefore<Fault extends SinkFault | WatchStep>(
  step: number,
  faults: readonly Fault[] = [],
  { steps }: Schedule,
): readonly Fault[] {
  return faults.filter(({ beforeStep }) => beforeStep % (steps.length + 1) === step);
}

function beginWatchFaults(step: number, schedule: Schedule, world: RandomWorld): void {
  for (const { kind, forMs } of faultsBefore(step, schedule.watchFaults, schedule)) {
    if (!world.isOver) world.runAction(() => world.beginWatchFault(kind, forMs));
  }
}

/** Some settings require what is a violation otherwise, and clock drift may be too large for a check. */
function applicableInvariants(invariants: readonly Invariant[], { settings, steps }: Schedule): readonly Invariant[] {
  const lifted = new Set<Invariant>();
  if (settings === 'restartPolicy exit') lifted.add(agentExitsForReason);
  if (settings === 'hotRestart off') lifted.add(servingIsKept);
  // The agent's clock decides whether a parent exited too early, and therefore whether its child is orphaned.
  if (
    steps.some(({ scheduledEvent }) => scheduledEvent.kind === 'pace' && Math.abs(scheduledEvent.percent - 100) > 1)
  ) {
    for (const invariant of [servingIsKept, orphanIsReplaced, replacedFinishesRequests]) lifted.add(invariant);
  }
  return invariants.filter((invariant) => !lifted.has(invariant));
}

/** After the last fault, the desired configuration is served. An agent that may have exhausted its retries gets a new task. */
function endInPeace(world: RandomWorld): void {
  if (world.isOver) return;
  world.runAction(() => world.endFaults());
  runUntilIdle(world);
  if (world.isOver || world.ledger.stop !== 'not ordered' || !world.ledger.mayHaveGivenUp) return;
  world.runAction(() => world.changeFiles('fine'));
  runUntilIdle(world);
}

function endByStop(world: RandomWorld): void {
  const { ledger, pacedClock } = world;
  if (!world.isOver) {
    const { terminationDrainMs, stopLimitMs } = settingsKinds[world.schedule.settings];
    const deadlineMs = pacedClock.now() + terminationDrainMs + stopLimitMs + reapMs;
    world.runAction(() => {
      ledger.orderStop();
      world.deliverSignal('SIGTERM');
    });
    runUntilIdle(world);
    if (pacedClock.now() > deadlineMs)
      ledger.recordViolation('a stop ends in time', `it took ${pacedClock.now() - deadlineMs} ms too long`);
  }
  const { output } = world.agent;
  if (ledger.stop === 'not ordered' && output?.trouble.length === 0) {
    ledger.recordViolation(
      'an agent that exits by itself reports the reason',
      `exit code ${output.exitCode}, no report`,
    );
  }
}

/** Runs until no spontaneous event is pending. */
function runUntilIdle(world: RandomWorld): void {
  let events = 0;
  while (!world.isOver && world.next()) {
    if (++events > maxEventsUntilIdle) {
      world.ledger.recordViolation('no livelock', `no rest after ${maxEventsUntilIdle} events`);
      return;
    }
  }
  if (world.ledger.violations.length === 0) {
    world.ledger.checkInvariants((invariant, observed) => invariant.whenIdle?.(observed));
  }
}

function recorderFor(
  { agent, checksDiagrams, sink }: RandomRunOptions,
  now: () => number,
  sinks: RandomSinks | undefined,
): Recorder | undefined {
  if (checksDiagrams !== true && sink === undefined && sinks === undefined) return undefined;
  const traceSinks = [sink, sinks?.traceSink].filter((one) => one !== undefined);
  const recorder = createRecorder({
    program: 'pilot-agent',
    now,
    machines: [agent],
    ...(traceSinks.length > 0 && { sinks: traceSinks }),
  });
  sinks?.logFrom(recorder);
  return recorder;
}

const diagrams = () => {
  loadedDiagrams ??= loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));
  return loadedDiagrams;
};
let loadedDiagrams: ReturnType<typeof loadDiagrams> | undefined;

function watchConformity(recorder: Recorder | undefined): () => InvariantViolation[] {
  const checker = new TraceChecker(diagrams());
  recorder?.observe(checker.feed);
  return () => {
    const [first] = checker.report().departures;
    if (first === undefined) return [];
    return [{ invariant: conformanceInvariant, detail: formatDeviation(first, diagrams()) }];
  };
}
