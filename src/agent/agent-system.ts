import { resolve } from 'node:path';
import type { ActorRefFrom, AnyActorRef, SnapshotFrom } from 'xstate';
import type { AgentOutput } from '../../machines/agent/agent.machine.ts';
import {
  dueOrdersOf,
  isDueOrder,
  successionExitCode,
  successionExitCodeOf,
} from '../../machines/agent/agent-upgrade/due-orders.ts';
import { persistedStateOf } from '../../machines/agent/envoy/adoption.ts';
import type { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { startRoot, waitForActor } from '../runtime/actors/actor-system.ts';
import { logRecords } from '../runtime/actors/log-records.ts';
import { catchUncaught, faultLog } from '../runtime/fences/uncaught.ts';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import { RunEnd } from '../runtime/findings/run-end.ts';
import type { Logger } from '../runtime/output/log.ts';
import { createRedactor } from '../runtime/trace/redact.ts';
import { agentWithEffects } from './agent.effects.ts';
import { type AgentProgram, agentSettings } from './agent-program.ts';
import type { AgentRecord } from './envoy/record/agent-record.ts';
import { requireFolders } from './options/requirements.ts';
import { SafetyNet } from './safety-net.ts';
import type { SignalInbox } from './signals.ts';
import { agentLog } from './status/agent-log.ts';
import { AgentMetrics } from './status/agent-metrics.ts';
import { agentStates } from './status/agent-states.ts';
import { RunningEpochs } from './status/running-epochs.ts';
import { XdsActivity } from './xds/xds-activity.ts';

/** @throws ChartpilotError if the configuration is unusable */
export async function runAgent(program: AgentProgram): Promise<AgentOutput> {
  const { options, log, recorder } = program;
  if (program.succeeds && !options.liveRestore) {
    return {
      exitCode: successionExitCode,
      trouble: [
        'this agent cannot take over: live restore is not active, set LIVE_RESTORE=true in a container whose entrypoint is pilot-agent',
      ],
    };
  }
  for (const warning of options.warnings) log.write(warning);
  const { hotRestart, config } = options;
  const configPath = config.customConfigFile ? undefined : config.configPath;
  const runDir = chooseRunDir(options.runDir, config.configPath);
  requireFolders({ runDir, configPath, hotRestart });
  if (options.runDir === undefined && runDir.startsWith(`${resolve(config.configPath)}/`)) {
    log.info('agent.runDirectoryChosen', { path: runDir });
  }
  const safetyNet = new SafetyNet(program);
  const { unknownOwners = [] } = safetyNet.record ?? {};
  if (unknownOwners.length > 0) {
    const directories = unknownOwners.join(', ');
    log.info('agent.recordsSkipped', { directories });
  }
  const xds = new XdsActivity();
  const metrics = new AgentMetrics(undefined, program.unwrittenLines, xds);
  metrics.setIdentity(options.identity.settings);
  const stopErrorLog = logUncaughtErrors(log, metrics);
  const stopLogging = logRecords(recorder, log.scope('agent'), {
    states: agentStates,
    entry: agentLog(),
  });
  recorder.observe((record) => metrics.observe(record));
  const runningEpochs = new RunningEpochs();
  recorder.observe((record) => runningEpochs.observe(record));
  const runEnd = new RunEnd('agent');
  const stopFollowing = recorder.observe((record) => runEnd.addRecord(record));
  try {
    const { machine, firstValidation } = await agentWithEffects(program, safetyNet, {
      metrics,
      xds,
      living: runningEpochs,
    });
    const actor = startRoot(machine, {
      id: 'agent',
      input: { settings: agentSettings(program) },
      recorder,
      onError: () => {},
    });
    const stopRecording = safetyNet.record && recordChanges(actor, safetyNet.record);
    try {
      // Flags that Envoy rejects end the agent before it has started.
      const output = await Promise.race([
        waitForActor(actor),
        ...(firstValidation === undefined ? [] : [firstValidation.refusal()]),
      ]);
      if (output === undefined) throw new Error('agent state machine ended without a result');
      return { ...output, exitCode: exitCodeWith(output.exitCode, safetyNet.signals) };
    } finally {
      firstValidation?.stop();
      stopRecording?.();
      actor.stop();
    }
  } finally {
    stopLogging();
    stopFollowing();
    const leftoverProcesses = await safetyNet.cleanUp();
    for (const { pid, epoch } of leftoverProcesses) log.error('envoy.leftover', { pid, epoch });
    if (runEnd.sentence !== undefined) {
      const result = createRedactor()(runEnd.sentence);
      if (runEnd.isFailure) log.error('agent.failed', { result });
      else log.info('agent.exited', { result });
    }
    stopErrorLog();
  }
}

/** The exit code includes orders received after the charts ended. */
function exitCodeWith(exitCode: number, { counts, pendingSignals }: SignalInbox): number {
  const dueOrders = dueOrdersOf(exitCode);
  return dueOrders === undefined
    ? exitCode
    : successionExitCodeOf([...dueOrders, ...pendingSignals.filter(isDueOrder)], counts);
}

/** The record is written before the next Envoy has a process. */
function recordChanges(agent: AnyActorRef, record: AgentRecord): () => void {
  let supervisor: AnyActorRef | undefined;
  const followSupervisor = (): void => {
    const nextSupervisor = agent.system.get('supervisor') as ActorRefFrom<typeof supervisorMachine> | undefined;
    if (nextSupervisor === undefined || nextSupervisor === supervisor) return;
    supervisor = nextSupervisor;
    const write = (snapshot: SnapshotFrom<typeof supervisorMachine>): void => {
      // During an adoption the existing record stays.
      if (snapshot.context.adopted.length === 0) record.recordState(persistedStateOf(snapshot.context));
    };
    write(nextSupervisor.getSnapshot());
    nextSupervisor.subscribe(write);
  };
  followSupervisor();
  const { unsubscribe } = agent.subscribe(followSupervisor);
  return unsubscribe;
}

/** An uncaught error must not end Envoy, so the agent continues. */
function logUncaughtErrors(log: Logger, metrics: AgentMetrics): () => void {
  const report = faultLog(log, 'fault.uncaught');
  return catchUncaught((error, origin) => {
    metrics.countUncaught(origin);
    report(error, { origin });
  });
}
