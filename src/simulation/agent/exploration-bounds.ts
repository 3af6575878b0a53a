import type { InspectionEvent } from 'xstate';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import type { Invariant } from './invariants/invariant.ts';
import { firstBinary } from './simulated-process.ts';

/** Maximum number of each kind of choice in a run. */
export interface Bounds {
  /** Changed certificates, SIGHUPs and, if `orders` includes them, SIGUSR1s. */
  readonly triggers: number;
  /**
   * Crashes, rejected and unfinished bootstraps, failed spawns, processes that do not exit or respond, rejected repairs, unusable certificates, and
   * configurations with which Envoy never becomes live or lacks a listener.
   */
  readonly faults: number;
  /** SIGTERMs: 1 is a stop, 2 an interrupted stop. */
  readonly stops: 0 | 1 | 2;
}

export interface ExplorationOptions {
  readonly settings?: AgentSettings;
  /** Primary and spare base ID of the agent. */
  readonly baseIds?: readonly number[];
  readonly invariants?: readonly Invariant[];
  /** Names of the faults that may occur, such as `starve`. Default: all but `usr1`. */
  readonly faults?: readonly string[];
  /** Names of the triggers that may occur, such as `binary`. A stop is always allowed. Default: all but `reopen`. */
  readonly orders?: readonly string[];
  /** Distinguishes states by the exact intervals between deadlines, not only by their order. */
  readonly exactTimes?: boolean;
  /** Files that the first start requires can appear later or never. */
  readonly filesLate?: boolean;
  /** A new process is reported after a delay. */
  readonly spawnsLate?: boolean;
  /** Reading the certificate files can take time, or never finish. */
  readonly readingHangs?: boolean;
  /** The watch of the certificate directory can fail or hang, and the directory can disappear and reappear. */
  readonly watchFails?: boolean;
  /** The Envoy binary can be replaced by a compatible one or, as a fault, by an incompatible one. */
  readonly binaryReplaced?: boolean;
  /** The agent can be killed, which leaves its Envoys running; another agent takes over. */
  readonly agentKilled?: boolean;
  /** A newer agent can start, and take over from this one in time or not. */
  readonly agentSucceeded?: boolean;
  /** Off by default, because logging why an Envoy is not live has no other effect. */
  readonly logsDelays?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
  /** Needed for traces. */
  readonly recordsTime?: boolean;
}

export const explorationBaseIds: readonly number[] = [7, 8];

export const withBinary = (settings: AgentSettings, isReplaced: boolean): AgentSettings => ({
  ...settings,
  binary: { ...settings.binary, path: isReplaced ? '/usr/bin/envoy' : '', first: firstBinary },
});

/** Settings are as in production, except for a bucket of one token and a budget of one retry. */
export const explorationSettings: AgentSettings = {
  ...defaultSettings,
  watch: { ...defaultSettings.watch, directories: ['certs'] },
  retry: { ...defaultSettings.retry, budget: 1 },
  starts: { ...defaultSettings.starts, burst: 1 },
};
