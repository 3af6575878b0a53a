import type {
  BinaryChanged,
  BinaryRejected,
  ChildAbort,
  ConfigChanged,
  ConfigRejected,
  EpochReport,
  HandOver,
  LogsReopen,
  PhaseOrder,
  RestartDecided,
  RestartReason,
  StartGranted,
  SupervisorRestart,
  SupervisorStart,
  SupervisorStop,
  SupervisorStopNow,
} from '../protocol.ts';
import type { AgentSettings } from '../settings.ts';
import type { AdoptedEpoch, Adoption } from './adoption.ts';
import {
  type BaseIds,
  baseIdOfNext,
  type DesiredState,
  type EpochRecord,
  type Epochs,
  isBaseIdBlocked,
  isKillable,
  newestOf,
  servingOf,
} from './epoch-record.ts';
import type { RestartInput } from './restart.machine.ts';
import type { ShutdownInput } from './shutdown.machine.ts';

/** The debugger and tests use tags, because state names may change. */
export type SupervisorTag =
  | 'not started'
  | 'adopting'
  | 'settled'
  | 'waiting for parent exit'
  | 'rate limited'
  | 'repairing'
  | 'full restart'
  | 'draining'
  | 'killing'
  | 'backing off'
  | 'retries exhausted'
  | 'stopping';

export interface SupervisorInput {
  baseIds: BaseIds;
  settings: AgentSettings;
  /** Envoys that another agent left running. */
  adoption?: Adoption;
}

export interface SupervisorContext extends Omit<SupervisorInput, 'adoption'> {
  desired: DesiredState;
  epochs: EpochRecord[];
  /** Number of failures since the last reset of the retry budget. */
  failures: number;
  /** Why the last attempts failed, oldest first. */
  attempts: string[];
  /** How the supervisor handles a parent that rejects its child; reset when a child is live. */
  recovery: 'none' | 'repair' | 'replace';
  /** `none` after `deciding` has evaluated the last attempt. */
  lastFailure: AttemptFailure | 'none';
  reason: RestartReason;
  /** `undefined` between starts. */
  restart: Omit<RestartDecided, 'type'> | undefined;
  /** Envoys that are not adopted yet. `epochs` has their records, except that of the candidate. */
  adopted: AdoptedEpoch[];
  /** `undefined` if the other agent was killed or left no Envoys. */
  handOver: HandOver | undefined;
  /** Number of starts that were cancelled for a newer desired state since an epoch last became live. */
  cancelledStarts: number;
  /** An epoch became live with this configuration, so a cold start does not validate it again. */
  provenDigest: string;
  /** The newest binary that served for `healthyMs`, or the first one, replaces a withdrawn binary. */
  provenBinary: string;
}

/** `refused`: the parent rejects every child and was not repaired. `no room`: there is no free base ID. */
export type AttemptFailure = 'failed' | 'refused' | 'no room';

/**
 * The supervisor raises an exit with the role of the epoch. `candidate.failed`: it was starting. `candidate.aborted`: its start had been aborted.
 * `candidate.orphaned`: its parent exited, and no epoch serves. `serving.orphaned`: the parent of the serving epoch exited too early.
 * `base-id.blocked`: SIGKILL has no effect.
 */
export type ClassifiedExit = {
  type:
    | 'serving.failed'
    | 'serving.orphaned'
    | 'candidate.failed'
    | 'candidate.aborted'
    | 'candidate.orphaned'
    | 'base-id.blocked'
    | 'epoch.ended';
  lastFailure: AttemptFailure | 'none';
};

export const parentFailures = [
  'its parent hangs',
  'its parent is gone',
] as const satisfies readonly ChildAbort['reason'][];

export interface SupervisorOutput {
  /** Whether the supervisor was stopped on request, or exited with Envoy because of the restart policy. */
  ordered: boolean;
  attempts: string[];
}

export type SupervisorEvent =
  | SupervisorStart
  | SupervisorRestart
  | SupervisorStop
  | SupervisorStopNow
  | LogsReopen
  | ConfigChanged
  | ConfigRejected
  | BinaryChanged
  | BinaryRejected
  | StartGranted
  | PhaseOrder
  | EpochReport
  | ClassifiedExit;

/** The limit is more than three times the longest start measured with available dependencies (1.5 s, on a busy machine). */
const firstOutdatedLimitMs = 5_000;

/** Whether the serving epoch rejects children, or will abort soon. */
export const cannotHaveChild = ({ epochs, recovery }: SupervisorContext): boolean =>
  recovery === 'replace' || servingOf(epochs)?.doomed === true;

export const requiresReplacement = (context: SupervisorContext): boolean => {
  const servingEpoch = servingOf(context.epochs);
  return (
    cannotHaveChild(context) || (servingEpoch !== undefined && isBaseIdBlocked(context.epochs, servingEpoch.baseId))
  );
};

export const nextFreeBaseId = (context: SupervisorContext): number | undefined =>
  baseIdOfNext(context.epochs, context.baseIds, requiresReplacement(context));

const hasNewestConfiguration = ({ epochs, desired }: SupervisorContext): boolean => {
  const newestEpoch = newestOf(epochs);
  return newestEpoch?.digest === desired.digest && newestEpoch.orders === desired.orders;
};

export const isConfigurationCurrent = (context: SupervisorContext): boolean =>
  hasNewestConfiguration(context) && newestOf(context.epochs)?.binary === context.desired.binary;

/** A new binary is started only while another epoch serves, which continues to serve if the new one fails. */
export const binaryOfNext = ({ epochs, desired, provenBinary, provenDigest, settings }: SupervisorContext): string =>
  servingOf(epochs) !== undefined || !settings.hotRestart || provenDigest === '' ? desired.binary : provenBinary;

/** Whether the desired state changed after the start of the newest epoch, and no client uses that epoch. */
export const isOutdated = (context: SupervisorContext): boolean => {
  const newestEpoch = newestOf(context.epochs);
  return newestEpoch?.epoch === 0 && !(hasNewestConfiguration(context) && newestEpoch.binary === binaryOfNext(context));
};

export const restartInputOf = (context: SupervisorContext): RestartInput => {
  const { epochs, settings, cancelledStarts } = context;
  return {
    isBesideServing: servingOf(epochs) !== undefined,
    hasNoParent: newestOf(epochs)?.epoch === 0,
    isOutdated: isOutdated(context),
    startLimitMs: settings.startLimitMs,
    // Doubles with each cancellation, so that an Envoy that starts slowly becomes live although changes continue.
    outdatedLimitMs: Math.min(settings.retry.maxDelayMs, firstOutdatedLimitMs * 2 ** cancelledStarts),
  };
};

export const drainableEpochsOf = ({
  epochs,
}: SupervisorContext): Pick<ShutdownInput, 'nothingToDrain' | 'adminPort'> => ({
  nothingToDrain: epochs.filter(isKillable).every((e) => e.phase === 'starting'),
  // A child that was killed when the drain began may still be running.
  adminPort: (servingOf(epochs) ?? newestOf(epochs))?.adminPort ?? 0,
});

export const shutdownInputOf = (context: SupervisorContext, isImmediate: boolean): ShutdownInput => {
  const { exitOnZeroActiveConnections, terminationDrainMs, minimumDrainMs, stopLimitMs } = context.settings;
  const waitsForRequests = exitOnZeroActiveConnections;
  return {
    ...drainableEpochsOf(context),
    now: isImmediate,
    waitsForRequests,
    terminationDrainMs,
    minimumDrainMs,
    stopLimitMs,
  };
};

export const unseenMsOf = (event: SupervisorEvent): number => (event.type === 'epoch.live' ? event.unseenMs : 0);

export const hasEpochName = (event: SupervisorEvent): event is Extract<SupervisorEvent, { name: string }> =>
  'name' in event;

export const isFromNewestEpoch = (event: SupervisorEvent, { epochs }: SupervisorContext): boolean =>
  hasEpochName(event) && event.name === newestOf(epochs)?.name;

/** The parent that drains because `child` serves. */
export function parentOf(epochs: Epochs, child: EpochRecord | undefined): EpochRecord | undefined {
  return epochs.find((e) => e.phase === 'leaving' && e.baseId === child?.baseId);
}
