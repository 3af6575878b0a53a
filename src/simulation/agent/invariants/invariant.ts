import type { AgentSettings } from '../../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../../machines/agent/status-protocol.ts';
import type { ProcessEnd } from '../simulated-envoy.machine.ts';
import type { EnvoySignal, SimulatedHost, SimulatedProcess } from '../simulated-host.ts';

/** Input of an invariant: the host, and the orders to the agent. Never the agent's own state. */
export interface Observed {
  readonly host: SimulatedHost;
  /** What the agent should run by now. */
  readonly wanted: { readonly files: number; readonly orders: number };
  /** Upper bound of the failed starts and lost live epochs since the agent's last trigger. */
  readonly triesSinceTrigger: number;
  readonly retryBudget: number;
  /** A signal ordered the agent to stop. */
  readonly stopOrdered: boolean;
  /** The time for draining is over, or a second signal came. */
  readonly stopDeadlinePassed: boolean;
  /** The time for a draining parent to exit by itself, with a margin, has passed. */
  isOverdue(parent: SimulatedProcess): boolean;
  /** The agent is past the point of no return: it waits for the last processes. */
  readonly agentEnds: boolean;
  /** A further stop was ordered in that state. */
  readonly hurried?: boolean;
  /** No Envoy ever becomes live with the wanted configuration. */
  readonly mayWaitForEver?: boolean;
  /** Exit code of the agent; `undefined` while it runs. */
  readonly agentExitCode: number | undefined;
  /** Machines whose actor failed. */
  readonly failures: readonly string[];
  /** A full restart is the only way: hot restart is off, or there is only one base id. */
  readonly restartsInFull?: boolean;
  /** The agent's settings. */
  readonly policy?: Pick<AgentSettings, 'hotRestart' | 'restartPolicy'>;
  /** The start that the supervisor has reported as decided, and not as ended. */
  readonly restart?: string | undefined;
  /** Binaries that were checked and are compatible. */
  readonly checked?: ReadonlySet<string>;
  readonly withdrawn?: ReadonlySet<string>;
  /** Binaries whose Envoy exited by itself before it had served for a minute, and reverted ones. */
  readonly failedBinaries?: ReadonlySet<string>;
  /** The unreported reason why a start had no space for its files. */
  readonly untold?: string | undefined;
}

/** A property that must always hold. Each function returns a description of the violation, or nothing. */
export interface Invariant {
  readonly name: string;
  /** The bootstrap of a process that will be started is requested. */
  preparing?(newcomer: { epoch: number; binary: string }, observed: Observed): string | undefined;
  /** A process is about to be started. */
  spawning?(newcomer: { epoch: number; baseId: number; binary?: string }, observed: Observed): string | undefined;
  /** The agent is about to send a signal. */
  signalling?(process: SimulatedProcess, signal: EnvoySignal, observed: Observed): string | undefined;
  /** The agent orders an Envoy to drain. */
  draining?(process: SimulatedProcess, observed: Observed): string | undefined;
  /** A process has exited. */
  leaving?(process: SimulatedProcess, end: ProcessEnd, observed: Observed): string | undefined;
  /** The supervisor reports a start to the agent. */
  reporting?(what: 'restart.decided' | 'restart.ended', name: string, observed: Observed): string | undefined;
  /** A readiness query of this proxy got a response. */
  answering?(answer: ReadinessRespond, observed: Observed): string | undefined;
  /** After every choice, when all is quiet again. */
  always?(observed: Observed): string | undefined;
  /** Nothing more will happen by itself. */
  atRest?(observed: Observed): string | undefined;
}

export const named = (process: SimulatedProcess): string => `epoch ${process.label}`;
export const listOf = (processes: readonly SimulatedProcess[]): string =>
  processes.length === 0
    ? 'none'
    : processes.map(({ label, live }) => `${label}${live ? '' : ' (not live)'}`).join(', ');
