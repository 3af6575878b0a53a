/** How far an exploration of the agent goes, and under which settings. */
import type { InspectionEvent } from 'xstate';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import type { Invariant } from './invariants/invariant.ts';
import { firstBinary } from './simulated-process.ts';

/** How much of each kind a run may hold. */
export interface Bounds {
  /** Changed certificates, SIGHUPs and, where they are among the orders, SIGUSR1s. */
  readonly triggers: number;
  /**
   * Crashes, refused and unanswered bootstraps, failed spawns, processes that do not end, refused repairs, unusable certificates, processes
   * that answer nobody or cannot be killed, configurations with which no Envoy is ever live, or not with all its listeners.
   */
  readonly faults: number;
  /** SIGTERMs: 1 a stop, 2 a stop that is cut short. */
  readonly stops: 0 | 1 | 2;
}

export interface ExplorationOptions {
  readonly settings?: AgentSettings;
  /** Those that the agent gets: the first one, and the one to fall back to. */
  readonly baseIds?: readonly number[];
  readonly invariants?: readonly Invariant[];
  /** These alone may go wrong, by the names of their choices: `starve`. Absent: everything but `usr1`. */
  readonly faults?: readonly string[];
  /** These alone may be asked of the agent, by name: `binary`. A stop always may. Absent: everything but `reopen`. */
  readonly orders?: readonly string[];
  /** Two states whose deadlines lie at other distances are two, though their order may be the same. */
  readonly exactTimes?: boolean;
  /** Files that the first start needs come late, or never. */
  readonly filesLate?: boolean;
  /** A new process is reported in its time, not at once. */
  readonly spawnsLate?: boolean;
  /** A reading of the certificate files takes its time, and may never be answered. */
  readonly readingHangs?: boolean;
  /** The watch of the certificate directory may fail or hang, and the directory may go and come. */
  readonly watchFails?: boolean;
  /** Another Envoy may be put at the path of the binary: one that fits, or, as a fault, one that does not. */
  readonly binaryReplaced?: boolean;
  /** The agent may be killed, which leaves its Envoys running; another one follows it. */
  readonly agentKilled?: boolean;
  /** A newer agent may be there, which takes over from this one in time, or does not. */
  readonly agentSucceeded?: boolean;
  /** People are told what an Envoy waits for. Nothing else comes of it, so it is left out where it is not said. */
  readonly notices?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
  /** Keeps count of the time that must have passed: for traces. */
  readonly timed?: boolean;
}

export const explorationBaseIds: readonly number[] = [7, 8];

/** Nobody looks at the path of Envoy's binary where others may not lie there. */
export const withBinary = (settings: AgentSettings, isReplaced: boolean): AgentSettings => ({
  ...settings,
  binary: { ...settings.binary, path: isReplaced ? '/usr/bin/envoy' : '', first: firstBinary },
});

/** As in production, but for counters: a bucket of one token, and a budget of one retry. */
export const explorationSettings: AgentSettings = {
  ...defaultSettings,
  watch: { ...defaultSettings.watch, directories: ['certs'] },
  retry: { ...defaultSettings.retry, budget: 1 },
  starts: { ...defaultSettings.starts, burst: 1 },
};
