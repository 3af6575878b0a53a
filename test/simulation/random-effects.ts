/** The agent's machines for random runs: those of the explorer, with effects that may be slow or fail. */
import type { AnyActorRef } from 'xstate';
import type { EnvoyProbe } from '../../machines/agent/status-protocol.ts';
import { type RunningEffect, scriptedCallback, scriptedPromise } from '../../src/debugger/explore/scripted-effect.ts';
import {
  type AgentMachines,
  agentMachines,
  type EffectWorld,
  type ScriptedAgent,
  scriptedAgent,
  scriptedWatch,
  worldOf,
} from '../../src/simulation/agent/exploration-effects.ts';

/** Calls of effects that only random runs need. */
export interface RandomEffectWorld extends EffectWorld {
  startClaim(call: AnyActorRef): void;
  setFileWait(call: AnyActorRef, on: boolean): void;
  setFileRead(call: AnyActorRef, on: boolean): void;
  serveStatus(http: AnyActorRef, on: boolean): void;
  statusOrder(
    http: AnyActorRef,
    order: { type: string; request?: number; baseId?: number; at?: EnvoyProbe['at'] },
  ): void;
}

const worldOfCall = ({ system }: RunningEffect<unknown>): RandomEffectWorld => worldOf.get(system) as RandomEffectWorld;

/** Built once per set of machines, because `provide` drops what XState has memoized. */
export function randomAgent(machines: Partial<AgentMachines> = {}): ScriptedAgent {
  const { certWatcher, directoryWatch, status } = { ...agentMachines, ...machines };
  return scriptedAgent({ ...agentMachines, ...machines }).provide({
    actors: {
      claimBaseIds: scriptedPromise<{ baseIds: number[]; sweptFiles: string[] }, { succeeds: boolean }>((call) =>
        worldOfCall(call).startClaim(call.self),
      ),
      certWatcher: certWatcher.provide({
        actors: {
          waitForFiles: scriptedCallback<{ type: never }, { files: string[] }>({
            start: (effect) => worldOfCall(effect).setFileWait(effect.self, true),
            stop: (effect) => worldOfCall(effect).setFileWait(effect.self, false),
          }),
          directory: scriptedWatch(directoryWatch),
          digestFiles: scriptedPromise<
            { digest: string; files: string[]; problems: string[] },
            { directories: string[]; judge: boolean }
          >(
            (call) => worldOfCall(call).setFileRead(call.self, true),
            (call) => worldOfCall(call).setFileRead(call.self, false),
          ),
        },
      }),
      status: status.provide({
        actors: {
          http: scriptedCallback({
            start: (effect) => worldOfCall(effect).serveStatus(effect.self, true),
            receive: (effect, order) => worldOfCall(effect).statusOrder(effect.self, order),
            stop: (effect) => worldOfCall(effect).serveStatus(effect.self, false),
          }),
        },
      }),
    },
  });
}
