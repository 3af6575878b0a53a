import type { AgentSettings } from '../../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../../machines/agent/status-protocol.ts';
import type { ProcessEnd } from '../simulated-envoy.machine.ts';
import type { EnvoySignal, SimulatedHost, SimulatedProcess } from '../simulated-host.ts';

/** Input of an invariant: the host and the orders to the agent, never the agent's own state. */
export interface Observed {
  readonly host: SimulatedHost;
  /** Generation that the agent should run. */
  readonly desired: { readonly files: number; readonly orders: number };
  /** Maximum number of failed starts and lost live epochs since the agent's last trigger. */
  readonly triesSinceTrigger: number;
  readonly retryBudget: number;
  /** A signal ordered the agent to stop. */
  readonly stopOrdered: boolean;
  /** The time for draining has passed, or a second signal arrived. */
  readonly stopDeadlinePassed: boolean;
  /** Whether a draining parent had enough time to exit, including a margin. */
  isOverdue(parent: SimulatedProcess): boolean;
  /** The agent can no longer cancel its exit: it waits for the last processes. */
  readonly agentEnds: boolean;
  /** Another stop was ordered while {@link agentEnds}. */
  readonly isHurried?: boolean;
  /** No Envoy ever becomes live with the desired configuration. */
  readonly mayWaitForEver?: boolean;
  /** `undefined` while the agent runs. */
  readonly agentExitCode: number | undefined;
  readonly failures: readonly string[];
  /** A full restart is the only possibility: hot restart is off, or there is only one base ID. */
  readonly restartsInFull?: boolean;
  readonly policy?: Pick<AgentSettings, 'hotRestart' | 'restartPolicy'>;
  /** The start that the supervisor has reported as decided, but not as ended. */
  readonly restart?: string | undefined;
  /** Binaries that were checked and are compatible. */
  readonly checkedBinaries?: ReadonlySet<string>;
  readonly withdrawnBinaries?: ReadonlySet<string>;
  /** Withdrawn binaries, and binaries whose Envoy exited without an order within its first minute of serving. */
  readonly failedBinaries?: ReadonlySet<string>;
  /** Why there was no space for the files of a start, if the agent has not reported it. */
  readonly unreportedReason?: string | undefined;
}

/** A property that must always hold. Each function returns a description of the violation, if any. */
export interface Invariant {
  readonly name: string;
  /** The agent requests the bootstrap of a process that it will start. */
  onPrepare?(order: { epoch: number; binary: string }, observed: Observed): string | undefined;
  /** A process is about to be started. */
  onSpawn?(order: { epoch: number; baseId: number; binary?: string }, observed: Observed): string | undefined;
  /** The agent is about to send a signal. */
  onSignal?(process: SimulatedProcess, signal: EnvoySignal, observed: Observed): string | undefined;
  onDrain?(process: SimulatedProcess, observed: Observed): string | undefined;
  /** A process has exited. */
  onExit?(process: SimulatedProcess, end: ProcessEnd, observed: Observed): string | undefined;
  /** The supervisor reports a start to the agent. */
  onReport?(type: 'restart.decided' | 'restart.ended', name: string, observed: Observed): string | undefined;
  onReadiness?(response: ReadinessRespond, observed: Observed): string | undefined;
  /** Runs after every choice, when all actors are idle. */
  afterChoice?(observed: Observed): string | undefined;
  /** Runs when no spontaneous event remains. */
  whenIdle?(observed: Observed): string | undefined;
}

export const nameOf = (process: SimulatedProcess): string => `epoch ${process.label}`;
export const listOf = (processes: readonly SimulatedProcess[]): string =>
  processes.length === 0
    ? 'none'
    : processes.map(({ label, isLive }) => `${label}${isLive ? '' : ' (not live)'}`).join(', ');
