import type { EpochFailed, RestartOutcome, RestartReason } from '../protocol.ts';
import { isOnTrial } from './desired-binary.ts';
import { type EpochRecord, newestOf, servingOf } from './epoch-record.ts';
import { hasShutDown } from './parent-shutdown.ts';
import {
  type AttemptFailure,
  type ClassifiedExit,
  cannotHaveChild,
  hasEpochName,
  parentOf,
  type SupervisorContext,
  type SupervisorEvent,
} from './supervisor-context.ts';

/** The first start keeps its reason until an epoch is live. */
export function reasonUnlessFirstStart(
  { provenDigest, reason }: SupervisorContext,
  nextReason: RestartReason,
): RestartReason {
  return provenDigest === '' ? reason : nextReason;
}

/** If the desired state changed during the start, another epoch follows the live one for this reason. */
export function reasonAfterLive({ epochs, desired, reason }: SupervisorContext, event: SupervisorEvent): RestartReason {
  const liveEpoch = epochs.find((e) => hasEpochName(event) && e.name === event.name);
  if (liveEpoch === undefined) return reason;
  if (liveEpoch.digest !== desired.digest) return 'configuration changed';
  if (liveEpoch.binary !== desired.binary) return 'Envoy replaced';
  return liveEpoch.orders === desired.orders ? reason : 'ordered';
}

export function reasonAfterExit(event: SupervisorEvent): RestartReason | undefined {
  if (event.type !== 'epoch.failed') return undefined;
  if (event.outOfMemory) return 'out of memory';
  return hasShutDown(event) ? 'Envoy ended' : 'Envoy crashed';
}

export function restartOutcomeOf(event: SupervisorEvent, { epochs }: SupervisorContext, name: string): RestartOutcome {
  switch (event.type) {
    case 'epoch.live':
      return 'live';
    case 'epoch.exited':
    case 'epoch.overdue':
      return 'parent lost';
    case 'epoch.failed':
      if (event.name !== name) return 'parent lost';
      if (event.refusedByParent) return 'refused by the parent';
      return outcomesOfPreparing[event.during] ?? 'died';
    case 'supervisor.stop':
    case 'supervisor.stop-now':
      return 'called off';
    default:
      if (servingOf(epochs) !== undefined) return 'not live in time';
      // Without a serving epoch, a start has no limit: only a newer desired state or an unresponsive parent aborts it.
      return newestOf(epochs)?.epoch === 0 ? 'called off' : 'parent lost';
  }
}

const outcomesOfPreparing: { readonly [During in EpochFailed['during']]?: RestartOutcome } = {
  preparing: 'bootstrap refused',
  'reading the certificates': 'certificates changed',
  'writing the bootstrap': 'folder not writable',
  'reaching the control plane': 'control plane unreachable',
};

export const describeBlockedBaseId = ({ name, baseId }: EpochRecord): string =>
  `${name}: SIGKILL does not end it, so no other Envoy can have base id ${baseId}`;

export function describeFailedAttempt(event: SupervisorEvent, { epochs }: SupervisorContext): string {
  if (event.type === 'epoch.failed') return `${event.name}, ${event.during}: ${event.reason}`;
  return `${newestOf(epochs)?.name}: its parent left first`;
}

export function attemptFailureAfter(
  exitType: ClassifiedExit['type'],
  event: SupervisorEvent,
  context: SupervisorContext,
): AttemptFailure | 'none' {
  if (exitType === 'serving.failed') return isReplacedImmediately(context) ? 'none' : 'failed';
  if (exitType !== 'candidate.failed' || event.type !== 'epoch.failed') return 'none';
  const hasServingEpoch = servingOf(context.epochs) !== undefined;
  // A failure before the process existed does not affect base IDs.
  if (hasServingEpoch && cannotHaveChild(context) && event.during === 'initializing') return 'no room';
  return hasServingEpoch && event.refusedByParent ? 'refused' : 'failed';
}

/**
 * There is no backoff if the parent of the failed epoch still drains and accepts another child, because connections are refused until a child is
 * live. A new binary that failed causes no backoff either, because the proven one follows.
 */
function isReplacedImmediately(context: SupervisorContext): boolean {
  const { settings, failures, epochs } = context;
  const leavesParent = failures === 0 && parentOf(epochs, servingOf(epochs)) !== undefined;
  return settings.restartPolicy === 'retry' && (leavesParent || isOnTrial(context));
}
