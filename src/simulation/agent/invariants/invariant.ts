import type { AgentSettings } from '../../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../../machines/agent/status-protocol.ts';
import type { ProcessEnd } from '../simulated-envoy.machine.ts';
import type { EnvoySignal, SimulatedHost, SimulatedProcess } from '../simulated-host.ts';

/** What an invariant looks at: the host, and what the outside has asked of the agent. Never the agent's own belief. */
export interface Observed {
  readonly host: SimulatedHost;
  /** What the agent should run by now. */
  readonly wanted: { readonly files: number; readonly orders: number };
  /** Starts that may have failed, and live epochs lost, since the agent was last given something new to do: the most. */
  readonly triesSinceTrigger: number;
  readonly retryBudget: number;
  /** A signal told the agent to end. */
  readonly stopOrdered: boolean;
  /** The time for draining is over, or a second signal came. */
  readonly stopDeadlinePassed: boolean;
  /** A draining parent should have left by itself, and some. */
  isOverdue(parent: SimulatedProcess): boolean;
  /** The agent is past the point of no return: it waits for the last processes. */
  readonly agentEnds: boolean;
  /** And was told to end once more then. */
  readonly hurried?: boolean;
  /** With what is wanted no Envoy is ever live. */
  readonly mayWaitForEver?: boolean;
  /** How the agent ended; undefined while it runs. */
  readonly agentExitCode: number | undefined;
  /** Charts that failed. */
  readonly failures: readonly string[];
  /** There is no other way than a restart in full: hot restart is off, or there is one base id only. */
  readonly restartsInFull?: boolean;
  /** As it was told. */
  readonly policy?: Pick<AgentSettings, 'hotRestart' | 'restartPolicy'>;
  /** The start that the supervisor has told of as decided and not as over. */
  readonly restart?: string | undefined;
  /** Envoys that were looked at and found to fit. */
  readonly checked?: ReadonlySet<string>;
  readonly withdrawn?: ReadonlySet<string>;
  /** Those that died by themselves before they had served for a minute, or were taken back. */
  readonly failedBinaries?: ReadonlySet<string>;
  /** Why a start had no room for its files, which nobody was told. */
  readonly untold?: string | undefined;
}

/** One thing that must never be. Each function answers what is wrong, in words, or nothing. */
export interface Invariant {
  readonly name: string;
  /** The bootstrap of a process that is to be started is asked for. */
  preparing?(newcomer: { epoch: number; binary: string }, observed: Observed): string | undefined;
  /** A process is about to be started. */
  spawning?(newcomer: { epoch: number; baseId: number; binary?: string }, observed: Observed): string | undefined;
  /** The agent is about to send a signal. */
  signalling?(process: SimulatedProcess, signal: EnvoySignal, observed: Observed): string | undefined;
  /** The agent orders an Envoy to drain. */
  draining?(process: SimulatedProcess, observed: Observed): string | undefined;
  /** A process has ended. */
  leaving?(process: SimulatedProcess, end: ProcessEnd, observed: Observed): string | undefined;
  /** The supervisor tells the agent of a start. */
  reporting?(what: 'restart.decided' | 'restart.ended', name: string, observed: Observed): string | undefined;
  /** Somebody asked whether this proxy is ready. */
  answering?(answer: ReadinessRespond, observed: Observed): string | undefined;
  /** Something happened, and all is quiet again. */
  always?(observed: Observed): string | undefined;
  /** Nothing more will happen by itself. */
  atRest?(observed: Observed): string | undefined;
}

export const named = (process: SimulatedProcess): string => `epoch ${process.label}`;
export const listOf = (processes: readonly SimulatedProcess[]): string =>
  processes.length === 0
    ? 'none'
    : processes.map(({ label, live }) => `${label}${live ? '' : ' (not live)'}`).join(', ');
