/** What the supervisor knows, and what follows from it: by this it decides. */

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
  type Desired,
  type EpochRecord,
  type Epochs,
  isBlocked,
  isKillable,
  newestOf,
  servingOf,
} from './epoch-record.ts';
import type { RestartInput } from './restart.machine.ts';
import type { ShutdownInput } from './shutdown.machine.ts';

/** The condition of the supervisor, independent of the names of its states: for the debugger and for tests. */
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
  /** What an agent that was killed has left running; absent: nothing. */
  adoption?: Adoption;
}

export interface SupervisorContext extends Omit<SupervisorInput, 'adoption'> {
  desired: Desired;
  epochs: EpochRecord[];
  /** Failures since the retry budget was last renewed. */
  failures: number;
  /** Why each of the last tries ended, oldest first: the report of an agent that gives up. */
  attempts: string[];
  /** What was done, or is to be done, about a parent that refuses its child; forgotten when a child is live. */
  recovery: 'none' | 'repair' | 'replace';
  /** What the last try came to; `none` as soon as it has been weighed. */
  setback: AttemptFailure | 'none';
  /** Why an Envoy is, or was last, to be started. The first start keeps its reason until one is live. */
  reason: RestartReason;
  /** The start that is under way; undefined between starts. */
  restart: Omit<RestartDecided, 'type'> | undefined;
  /** Envoys of an agent that was killed, which are not taken over yet; their records are among `epochs`, but for the newcomer's. */
  adopted: AdoptedEpoch[];
  /** How the Envoys of another agent came to this one; undefined if that agent was killed, or there was none. */
  handOver: HandOver | undefined;
  /** Starts that were called off since an Envoy was live, because what was wanted had changed. */
  calledOff: number;
  /** Digest of the last configuration that an Envoy went live with: it need not be checked again before a cold start. */
  provenDigest: string;
  /** The newest Envoy that served for a minute, or the one that the agent began with: what is gone back to. */
  provenBinary: string;
}

/**
 * `refused`: the parent refuses every child, and has not been repaired. `no room`: neither a child nor a replacement comes up
 * beside the epoch that serves.
 */
export type AttemptFailure = 'failed' | 'refused' | 'no room';

/**
 * The end of an epoch, as the supervisor says it to itself: whose it was. `newcomer`: it was to be live; `candidate.aborted`: it had been given
 * up; `candidate.orphaned`: its parent is gone, and nobody serves. `serving.orphaned`: the parent of the serving epoch died before its time.
 * `base-id.blocked`: SIGKILL does not end somebody. The rest: `epoch.ended`.
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
  /** What that means for the next try. */
  setback: AttemptFailure | 'none';
};

/** Why a child is aborted while its parent leaves. */
export const parentFailures = [
  'its parent hangs',
  'its parent is gone',
] as const satisfies readonly ChildAbort['why'][];

export interface SupervisorOutput {
  /** Ended because it was told to, or with an Envoy that ended by itself where that is the policy. */
  ordered: boolean;
  /** What was tried and why each try ended; empty after an ordered end. */
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

/** An Envoy that has all that it waits for is live in a third of this (spec/envoy-hot-restart.md §1). */
const firstOutdatedLimitMs = 5_000;

/** The serving epoch takes no child: it refuses them, or it will not live long. */
export const cannotHaveChild = ({ epochs, recovery }: SupervisorContext): boolean =>
  recovery === 'replace' || servingOf(epochs)?.doomed === true;

/** Hot restart from the serving epoch is impossible: also where somebody who cannot be killed has the names of its child. */
export const requiresReplacement = (context: SupervisorContext): boolean => {
  const serving = servingOf(context.epochs);
  return cannotHaveChild(context) || (serving !== undefined && isBlocked(context.epochs, serving.baseId));
};

export const nextFreeBaseId = (context: SupervisorContext): number | undefined =>
  baseIdOfNext(context.epochs, context.baseIds, requiresReplacement(context));

const hasNewestConfiguration = ({ epochs, desired }: SupervisorContext): boolean => {
  const newest = newestOf(epochs);
  return newest?.digest === desired.digest && newest.orders === desired.orders;
};

/** What the newest epoch was started for is what is wanted now. */
export const isCurrent = (context: SupervisorContext): boolean =>
  hasNewestConfiguration(context) && newestOf(context.epochs)?.binary === context.desired.binary;

/**
 * What the next epoch is started from. A new Envoy is started beside one that serves: it has somebody to go back to then. Without
 * hot restarts there is never anybody; and where none has ever been live, nobody knows of a better one.
 */
export const binaryOfNext = ({ epochs, desired, provenBinary, provenDigest, settings }: SupervisorContext): string =>
  servingOf(epochs) !== undefined || !settings.hotRestart || provenDigest === '' ? desired.binary : provenBinary;

/** Another start would be for something newer, and nobody would miss this one. */
export const isOutdated = (context: SupervisorContext): boolean => {
  const newest = newestOf(context.epochs);
  return newest?.epoch === 0 && !(hasNewestConfiguration(context) && newest.binary === binaryOfNext(context));
};

export const restartInputOf = (context: SupervisorContext): RestartInput => {
  const { epochs, settings, calledOff } = context;
  return {
    beside: servingOf(epochs) !== undefined,
    needsNobody: newestOf(epochs)?.epoch === 0,
    isOutdated: isOutdated(context),
    startLimitMs: settings.startLimitMs,
    // Longer each time: where news never cease, an Envoy that is slow to start becomes live at last.
    outdatedLimitMs: Math.min(settings.retry.maxDelayMs, firstOutdatedLimitMs * 2 ** calledOff),
  };
};

export const drainableEpochsOf = ({
  epochs,
}: SupervisorContext): Pick<ShutdownInput, 'nothingToDrain' | 'adminPort'> => ({
  nothingToDrain: epochs.filter(isKillable).every((e) => e.phase === 'starting'),
  // A child that was killed when the drain began may not be gone yet.
  adminPort: (servingOf(epochs) ?? newestOf(epochs))?.adminPort ?? 0,
});

export const shutdownInputOf = (context: SupervisorContext, now: boolean): ShutdownInput => {
  const { exitOnZeroActiveConnections, terminationDrainMs, minimumDrainMs, stopLimitMs } = context.settings;
  const waitsForRequests = exitOnZeroActiveConnections;
  return { ...drainableEpochsOf(context), now, waitsForRequests, terminationDrainMs, minimumDrainMs, stopLimitMs };
};

/** How long an epoch may have been live when that was seen. */
export const unseenMsOf = (event: SupervisorEvent): number => (event.type === 'epoch.live' ? event.unseenMs : 0);

export const isNamed = (event: SupervisorEvent): event is Extract<SupervisorEvent, { name: string }> => 'name' in event;

export const isOfNewest = (event: SupervisorEvent, { epochs }: SupervisorContext): boolean =>
  isNamed(event) && event.name === newestOf(epochs)?.name;

/** The epoch that Envoy will end because its child, of the same base id, serves. */
export function parentOf(epochs: Epochs, child: EpochRecord | undefined): EpochRecord | undefined {
  return epochs.find((e) => e.phase === 'leaving' && e.baseId === child?.baseId);
}
