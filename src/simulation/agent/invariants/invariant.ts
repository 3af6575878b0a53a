import type { AgentSettings } from '../../../../machines/agent/settings.ts';
import type { ReadinessRespond } from '../../../../machines/agent/status-protocol.ts';
import type { ProcessEnd } from '../simulated-envoy.machine.ts';
import type { EnvoySignal, SimulatedHost, SimulatedProcess } from '../simulated-host.ts';

/** The input of an invariant is the host and the orders to the agent, never the agent's own state. */
export interface Observation {
  readonly host: SimulatedHost;
  readonly desired: { readonly files: number; readonly orders: number };
  /** Counts failed starts and lost live epochs. */
  readonly triesSinceTrigger: number;
  readonly retryBudget: number;
  readonly stopOrdered: boolean;
  /** The time for draining has passed, or a second signal arrived. */
  readonly stopDeadlinePassed: boolean;
  /** The time to exit includes a margin. */
  isOverdue(parent: SimulatedProcess): boolean;
  /** The agent waits for the last processes and can no longer cancel its exit. */
  readonly agentEnds: boolean;
  /** Another stop was ordered while {@link agentEnds}. */
  readonly isHurried?: boolean;
  /** True if no Envoy ever becomes live with the desired configuration. */
  readonly mayWaitForEver?: boolean;
  /** `undefined` while the agent runs. */
  readonly agentExitCode: number | undefined;
  readonly failures: readonly string[];
  /** True if hot restart is off, or there is only one base ID. */
  readonly restartsInFull?: boolean;
  readonly policy?: Pick<AgentSettings, 'hotRestart' | 'restartPolicy'>;
  /** The start that the supervisor has reported as decided, but not as ended. */
  readonly restart?: string | undefined;
  /** Binaries that were checked and are compatible. */
  readonly checkedBinaries?: ReadonlySet<string>;
  readonly withdrawnBinaries?: ReadonlySet<string>;
  /** Includes withdrawn binaries, and binaries whose Envoy exited without an order within its first minute of serving. */
  readonly failedBinaries?: ReadonlySet<string>;
  readonly unreportedReason?: string | undefined;
}

/** Each function returns a description of the violation, if any. */
export interface Invariant {
  readonly name: string;
  onPrepare?(order: { epoch: number; binary: string }, observed: Observation): string | undefined;
  onSpawn?(order: { epoch: number; baseId: number; binary?: string }, observed: Observation): string | undefined;
  onSignal?(process: SimulatedProcess, signal: EnvoySignal, observed: Observation): string | undefined;
  onDrain?(process: SimulatedProcess, observed: Observation): string | undefined;
  onExit?(process: SimulatedProcess, end: ProcessEnd, observed: Observation): string | undefined;
  onReport?(type: 'restart.decided' | 'restart.ended', name: string, observed: Observation): string | undefined;
  onReadiness?(response: ReadinessRespond, observed: Observation): string | undefined;
  /** Called when all actors are idle. */
  afterChoice?(observed: Observation): string | undefined;
  /** Runs when no spontaneous event remains. */
  whenIdle?(observed: Observation): string | undefined;
}

export const nameOf = (process: SimulatedProcess): string => `epoch ${process.label}`;
export const listOf = (processes: readonly SimulatedProcess[]): string =>
  processes.length === 0
    ? 'none'
    : processes.map(({ label, isLive }) => `${label}${isLive ? '' : ' (not live)'}`).join(', ');
