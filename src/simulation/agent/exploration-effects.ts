/** The machines with scripted effects are built once per set of machines, because `provide` drops what XState has memoized. */
import type { AnyActorRef } from 'xstate';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { predecessorMachine } from '../../../machines/agent/agent-upgrade/predecessor.machine.ts';
import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import {
  type DrainListenersOrder,
  epochMachine,
  type PreparedEpoch,
  type PrepareOrder,
  type ProbeOrder,
  type StartOrder,
} from '../../../machines/agent/envoy/epoch.machine.ts';
import { restartMachine } from '../../../machines/agent/envoy/restart.machine.ts';
import { shutdownMachine } from '../../../machines/agent/envoy/shutdown.machine.ts';
import { supervisorMachine } from '../../../machines/agent/envoy/supervisor.machine.ts';
import {
  type BinaryCheckOrder,
  type BinaryCheckResult,
  binaryWatcherMachine,
} from '../../../machines/agent/files/binary-watcher.machine.ts';
import { certWatcherMachine } from '../../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../../machines/agent/files/directory-watch.machine.ts';
import type { FilesPending, ProbeExplain, ProbeRun, ProcessSignal } from '../../../machines/agent/protocol.ts';
import { statusMachine } from '../../../machines/agent/status/status.machine.ts';
import type { AdminUse, EnvoyProbe, ReadinessRespond } from '../../../machines/agent/status-protocol.ts';
import type { LinkOrder } from '../../../machines/agent/succession-protocol.ts';
import {
  type RunningEffect,
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../debugger/explore/scripted-effect.ts';

type EpochRun = { epoch: number; baseId: number };
/** `knownHash` is the hash of the content at the last watch. */
export type DirectoryWatchInput = { directory: string; knownHash: string | null };

export interface EffectWorld {
  setSignals(self: AnyActorRef | undefined): void;
  /** Default: the agent starts without Envoys. */
  claim?(baseIds: number[]): ClaimedIds;
  setSuccessorLink?(link: AnyActorRef, isOn: boolean): void;
  /** From this call on, Envoys outlive their actors. */
  beginHandOver?(): void;
  /** No newer agent takes over: the agent keeps its Envoys. */
  cancelHandOver?(): void;
  setWatch(watch: RunningEffect<DirectoryWatchInput>, isOn: boolean): void;
  /** If absent, the files exist. */
  setFileWait?(call: AnyActorRef, isOn: boolean): void;
  /** If absent, a read finishes immediately. */
  setFileRead?(call: AnyActorRef, isOn: boolean): void;
  readFiles(): string;
  /** The result contains why Envoy cannot use the files. */
  fileProblems?(): string[];
  /** If absent, the watch of the binary's directory reports nothing. */
  setBinaryWatch?(watch: AnyActorRef | undefined): void;
  /** If absent, the initial binary is at the path. */
  checkBinary?(): BinaryCheckResult;
  startPreparing(call: RunningEffect<PrepareOrder>): void;
  stopPreparing(call: RunningEffect<EpochRun>): void;
  spawn(effect: RunningEffect<StartOrder>): void;
  signal(effect: RunningEffect<EpochRun>, signal: ProcessSignal['signal']): void;
  /** The effect is stopped: no actor waits for the process. */
  abandonProcess(effect: RunningEffect<EpochRun>): void;
  setProbing(effect: RunningEffect<ProbeOrder>, isOn: boolean): void;
  openStatus?(http: AnyActorRef | undefined): void;
  orderStatus?(effect: RunningEffect<unknown>, order: AdminUse | EnvoyProbe | ReadinessRespond): void;
  probeNow(effect: RunningEffect<EpochRun>, order: ProbeRun): void;
  explain(effect: RunningEffect<EpochRun>): void;
  drain(run: EpochRun & { replaced: boolean }): boolean;
  /** The INITIALIZING mark of an epoch that exited before it was live is cleared only if that is safe. */
  startRepair(call: RunningEffect<{ baseId: number }>): void;
  /** Returns when the last Envoy has exited. */
  release(call: RunningEffect<{ baseIds: readonly number[]; keeps: boolean }>): void;
}

export const worldOf = new WeakMap<object, EffectWorld>();
const worldOfCall = ({ system }: { system: object }): EffectWorld => {
  const effectWorld = worldOf.get(system);
  if (effectWorld === undefined) throw new Error('an effect outside of any world');
  return effectWorld;
};

/** A test may pass a faulty machine. */
export interface AgentMachines {
  agent: typeof agentMachine;
  predecessor: typeof predecessorMachine;
  supervisor: typeof supervisorMachine;
  epoch: typeof epochMachine;
  certWatcher: typeof certWatcherMachine;
  binaryWatcher: typeof binaryWatcherMachine;
  directoryWatch: typeof directoryWatchMachine;
  status: typeof statusMachine;
  restart: typeof restartMachine;
  shutdown: typeof shutdownMachine;
}

export const agentMachines: AgentMachines = {
  agent: agentMachine,
  predecessor: predecessorMachine,
  supervisor: supervisorMachine,
  epoch: epochMachine,
  certWatcher: certWatcherMachine,
  binaryWatcher: binaryWatcherMachine,
  directoryWatch: directoryWatchMachine,
  status: statusMachine,
  restart: restartMachine,
  shutdown: shutdownMachine,
};

export type ScriptedAgent = typeof agentMachine;

export function scriptedAgent(machines: AgentMachines = agentMachines, baseIds = [7, 8]): ScriptedAgent {
  return machines.agent.provide({
    actors: {
      signals: scriptedCallback<{ type: never }, undefined>({
        start: (effect) => worldOfCall(effect).setSignals(effect.self),
        stop: (effect) => worldOfCall(effect).setSignals(undefined),
      }),
      claimBaseIds: scriptedPromise<ClaimedIds, { succeeds: boolean }>((call) =>
        settleCall(call.self, { value: worldOfCall(call).claim?.(baseIds) ?? { baseIds, sweptFiles: [] } }),
      ),
      predecessor: scriptedPredecessor(machines.predecessor, baseIds),
      releaseBaseIds: scriptedPromise<void, { baseIds: number[]; keeps: boolean }>((call) =>
        worldOfCall(call).release(call),
      ),
      status: machines.status.provide({
        actors: {
          http: scriptedCallback({
            start: (effect) => {
              worldOfCall(effect).openStatus?.(effect.self);
              reportEvent(effect.self, { type: 'http.listening', port: (effect.input as { port: number }).port });
            },
            receive: (effect, order) =>
              worldOfCall(effect).orderStatus?.(effect, order as AdminUse | EnvoyProbe | ReadinessRespond),
            stop: (effect) => worldOfCall(effect).openStatus?.(undefined),
          }),
        },
      }),
      certWatcher: scriptedWatcher(machines),
      binaryWatcher: scriptedBinaryWatcher(machines),
      supervisor: machines.supervisor.provide({
        actors: {
          epoch: scriptedEpoch(machines.epoch),
          repair: scriptedPromise<void, { baseId: number }>((call) => worldOfCall(call).startRepair(call)),
          restart: machines.restart,
          shutdown: machines.shutdown.provide({
            actors: {
              countRequests: scriptedPromise<number, { adminPort: number }>((call) =>
                settleCall(call.self, { value: 0 }),
              ),
            },
          }),
        },
      }),
    },
  });
}

function scriptedPredecessor(predecessor: typeof predecessorMachine, baseIds: number[]): typeof predecessorMachine {
  return predecessor.provide({
    actors: {
      link: scriptedCallback<LinkOrder, undefined>({
        start: (effect) => worldOfCall(effect).setSuccessorLink?.(effect.self, true),
        receive: (effect, { type }) => {
          if (type === 'successor.refuse') worldOfCall(effect).cancelHandOver?.();
        },
        stop: (effect) => worldOfCall(effect).setSuccessorLink?.(effect.self, false),
      }),
      writeRecord: scriptedPromise<void, undefined>((call) => {
        worldOfCall(call).beginHandOver?.();
        settleCall(call.self, { value: undefined });
      }),
      giveUp: scriptedPromise<void, undefined>((call) => settleCall(call.self, { value: undefined })),
      takeBack: scriptedPromise<ClaimedIds, undefined>((call) =>
        settleCall(call.self, { value: worldOfCall(call).claim?.(baseIds) ?? { baseIds, sweptFiles: [] } }),
      ),
    },
  });
}

export const noPendingFiles: FilesPending = { type: 'files.pending', missing: [], unreachable: [] };

export function readingOf(effects: EffectWorld): { digest: string; files: string[]; problems: string[] } {
  return { digest: effects.readFiles(), files: ['tls.crt'], problems: effects.fileProblems?.() ?? [] };
}

export function scriptedWatch(directoryWatch: typeof directoryWatchMachine): typeof directoryWatchMachine {
  return directoryWatch.provide({
    actors: {
      watchDirectory: scriptedCallback<{ type: never }, DirectoryWatchInput>({
        start: (watch) => worldOfCall(watch).setWatch(watch, true),
        stop: (watch) => worldOfCall(watch).setWatch(watch, false),
      }),
    },
  });
}

function scriptedBinaryWatcher({ binaryWatcher, directoryWatch }: AgentMachines): typeof binaryWatcherMachine {
  return binaryWatcher.provide({
    actors: {
      directory: directoryWatch.provide({
        actors: {
          watchDirectory: scriptedCallback<{ type: never }, DirectoryWatchInput>({
            start: (watch) => {
              worldOfCall(watch).setBinaryWatch?.(watch.self);
              reportEvent(watch.self, { type: 'watch.began' });
            },
            stop: (watch) => worldOfCall(watch).setBinaryWatch?.(undefined),
          }),
        },
      }),
      checkBinary: scriptedPromise<BinaryCheckResult, BinaryCheckOrder>((call) =>
        settleCall(call.self, {
          value: worldOfCall(call).checkBinary?.() ?? { binary: call.input.known, description: '' },
        }),
      ),
    },
  });
}

function scriptedWatcher({ certWatcher, directoryWatch }: AgentMachines): typeof certWatcherMachine {
  return certWatcher.provide({
    actors: {
      waitForFiles: scriptedCallback<{ type: never }, { files: string[] }>({
        start: ({ self, system }) => {
          const effects = worldOfCall({ system });
          if (effects.setFileWait === undefined) reportEvent(self, noPendingFiles);
          else effects.setFileWait(self, true);
        },
        stop: (effect) => worldOfCall(effect).setFileWait?.(effect.self, false),
      }),
      directory: scriptedWatch(directoryWatch),
      digestFiles: scriptedPromise<
        { digest: string; files: string[]; problems: string[] },
        { directories: string[]; judge: boolean }
      >(
        (call) => {
          const effects = worldOfCall(call);
          if (effects.setFileRead === undefined) settleCall(call.self, { value: readingOf(effects) });
          else effects.setFileRead(call.self, true);
        },
        (call) => worldOfCall(call).setFileRead?.(call.self, false),
      ),
    },
  });
}

function scriptedEpoch(epoch: typeof epochMachine): typeof epochMachine {
  return epoch.provide({
    actors: {
      prepare: scriptedPromise<PreparedEpoch, PrepareOrder>(
        (call) => worldOfCall(call).startPreparing(call),
        (call) => worldOfCall(call).stopPreparing(call),
      ),
      process: scriptedCallback<ProcessSignal, StartOrder>({
        start: (effect) => worldOfCall(effect).spawn(effect),
        receive: (effect, { signal }) => worldOfCall(effect).signal(effect, signal),
        stop: (effect) => worldOfCall(effect).abandonProcess(effect),
      }),
      probe: scriptedCallback<ProbeRun | ProbeExplain, ProbeOrder>({
        start: (effect) => worldOfCall(effect).setProbing(effect, true),
        receive: (effect, order) =>
          order.type === 'probe.run'
            ? worldOfCall(effect).probeNow(effect, order)
            : worldOfCall(effect).explain(effect),
        stop: (effect) => worldOfCall(effect).setProbing(effect, false),
      }),
      drainListeners: scriptedPromise<void, DrainListenersOrder>((call) => {
        const isDelivered = worldOfCall(call).drain(call.input);
        settleCall(call.self, isDelivered ? { value: undefined } : { error: new Error('connection refused') });
      }),
    },
  });
}
